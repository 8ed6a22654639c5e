#pragma once
/// @file
/// Programs of classic BPF that judge system calls (seccomp(2), linux/filter.h).

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include <linux/filter.h>
#include <linux/seccomp.h>

namespace backtrail::tracee {

/// A 64-bit program's call of that number.
seccomp_data system_call(std::uint32_t number, std::initializer_list<std::uint64_t> arguments);

class SeccompFilter {
 public:
  /// As the kernel has taken it; what it would refuse kills.
  explicit SeccompFilter(std::vector<sock_filter> program) : program_{std::move(program)} {}

  /// What the program returns: an action (SECCOMP_RET_ACTION_FULL) and its data.
  [[nodiscard]] std::uint32_t judge(const seccomp_data& call) const;
  /// It lets a 64-bit program's calls of that number pass, whatever their arguments are and
  /// wherever they are made.
  [[nodiscard]] bool always_allows(std::uint32_t number) const;
  /// The same for those with that second argument.
  [[nodiscard]] bool always_allows(std::uint32_t number, std::uint64_t second) const;
  /// It may look at where a call is made.
  [[nodiscard]] bool looks_at_place() const;

 private:
  std::vector<sock_filter> program_;
};

/// Those that a process has installed. Each of them judges each call.
class SeccompFilters {
 public:
  void add(SeccompFilter filter) { filters_.push_back(std::move(filter)); }
  [[nodiscard]] bool empty() const { return filters_.empty(); }
  [[nodiscard]] std::size_t size() const { return filters_.size(); }
  /// The call is made, at most with a line in the audit log.
  [[nodiscard]] bool allow(const seccomp_data& call) const;
  [[nodiscard]] bool always_allow(std::uint32_t number) const;
  [[nodiscard]] bool always_allow(std::uint32_t number, std::uint64_t second) const;
  [[nodiscard]] bool look_at_place() const;

 private:
  std::vector<SeccompFilter> filters_;
};

}  // namespace backtrail::tracee
