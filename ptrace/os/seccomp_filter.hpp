// SPDX-License-Identifier: Apache-2.0
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

/// Returns the kernel's description of a system call made by a 64-bit program.
seccomp_data system_call(std::uint32_t number, std::initializer_list<std::uint64_t> arguments);

class SeccompFilter {
 public:
  /// Takes a program that the kernel accepted. An invalid instruction counts as SECCOMP_RET_KILL.
  explicit SeccompFilter(std::vector<sock_filter> program) : program_{std::move(program)} {}

  /// Returns the program's verdict: an action (SECCOMP_RET_ACTION_FULL) and its data.
  [[nodiscard]] std::uint32_t judge(const seccomp_data& call) const;
  /// Returns true if it allows every call `number` of a 64-bit program, whatever the arguments and
  /// the address it is made at.
  [[nodiscard]] bool always_allows(std::uint32_t number) const;
  /// Returns true if it does so for calls whose second argument is `second`.
  [[nodiscard]] bool always_allows(std::uint32_t number, std::uint64_t second) const;
  /// Returns true if the program may look at the address that a call is made at.
  [[nodiscard]] bool looks_at_place() const;

 private:
  std::vector<sock_filter> program_;
};

/// The filters of a process. The kernel asks all of them about each call.
class SeccompFilters {
 public:
  void add(SeccompFilter filter) { filters_.push_back(std::move(filter)); }
  [[nodiscard]] bool empty() const { return filters_.empty(); }
  [[nodiscard]] std::size_t size() const { return filters_.size(); }
  /// Returns true if the call is made, at most with a line in the audit log.
  [[nodiscard]] bool allow(const seccomp_data& call) const;
  [[nodiscard]] bool always_allow(std::uint32_t number) const;
  [[nodiscard]] bool always_allow(std::uint32_t number, std::uint64_t second) const;
  [[nodiscard]] bool look_at_place() const;

 private:
  std::vector<SeccompFilter> filters_;
};

}  // namespace backtrail::tracee
