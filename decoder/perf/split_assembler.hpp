// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Assembles one CPU's pairs for two kinds of consumers: those of the program's branches, and those
/// of the kernel's as well.

#include <optional>

#include "decoder/perf/branch_assembler.hpp"

namespace backtrail::decoder::perf {

/// A BranchAssembler for the program's branches, and after add_whole() a second one for all
/// branches. Each call goes to both.
class SplitAssembler {
 public:
  /// See BranchAssembler.
  SplitAssembler(InsnCache* insns, TraceConsumer& user) : user_{insns, user} {}

  /// From now on `whole` receives every pair unchanged. Borrows it.
  void add_whole(TraceConsumer& whole) { whole_.emplace(nullptr, whole, Levels::kAll); }
  [[nodiscard]] bool has_whole() const { return whole_.has_value(); }
  void start(TraceeAddr pc) {
    each([&](BranchAssembler& one) { one.start(pc); });
  }
  void raw_records(std::span<const std::uint8_t> bytes) {
    each([&](BranchAssembler& one) { one.raw_records(bytes); });
  }
  void pair(std::uint64_t from, std::uint64_t to) {
    user_.pair(from, to);
    if (whole_) whole_->pair(from, to);
  }
  void lost(const Loss& loss) {
    each([&](BranchAssembler& one) { one.lost(loss); });
  }
  void mark(const TraceMark& mark) {
    each([&](BranchAssembler& one) { one.mark(mark); });
  }
  void insert(const Record& record) {
    each([&](BranchAssembler& one) { one.insert(record); });
  }
  void flush(std::optional<TraceeAddr> pc) {
    each([&](BranchAssembler& one) { one.flush(pc); });
  }
  /// The assembler of the program's branches.
  [[nodiscard]] const BranchAssembler& user() const { return user_; }

 private:
  template <typename Action>
  void each(const Action& action) {
    action(user_);
    if (whole_) action(*whole_);
  }

  BranchAssembler user_;
  std::optional<BranchAssembler> whole_;
};

}  // namespace backtrail::decoder::perf
