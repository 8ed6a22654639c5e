#pragma once
/// @file
/// Which pages of a process have contents, asked without touching them.
///
/// A read of a page that was never touched is not free: in a shared mapping it allocates the page.

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// Half open, in bytes.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const AddressRange&) const = default;
};

class PageScan {
 public:
  explicit PageScan(pid_t pid);

  /// Ranges of [begin, end) whose pages are in memory or swapped out, ascending, merged. All of it
  /// where the kernel does not say. `most_pages`: how many there can be (a bound for early ends).
  [[nodiscard]] std::vector<AddressRange> populated(AddressRange range, std::uint64_t most_pages);

 private:
  bool scan(AddressRange range, std::vector<AddressRange>& out) const;
  bool read_entries(AddressRange range, std::uint64_t most_pages,
                    std::vector<AddressRange>& out) const;

  UniqueFd pagemap_;
  bool can_scan_ = true;
};

}  // namespace backtrail::tracee
