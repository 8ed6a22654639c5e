// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds which pages of a process have contents, without touching them.
///
/// Reading a page that was never touched has a price: in a shared mapping it allocates the page.

#include <cstdint>
#include <vector>

#include <sys/types.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {

/// A half-open range, in bytes.
struct AddressRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool operator==(const AddressRange&) const = default;
};

class PageScan {
 public:
  explicit PageScan(pid_t pid);

  /// Returns the ranges within `range` whose pages are in memory or swapped out, ascending and
  /// merged; all of `range` if the kernel does not tell. `most_pages` bounds the number of such
  /// pages and lets the search end early.
  [[nodiscard]] std::vector<AddressRange> populated(AddressRange range, std::uint64_t most_pages);

 private:
  bool scan(AddressRange range, std::vector<AddressRange>& out) const;
  bool read_entries(AddressRange range, std::uint64_t most_pages,
                    std::vector<AddressRange>& out) const;

  UniqueFd pagemap_;
  bool can_scan_ = true;
};

}  // namespace backtrail::tracee
