// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Sees by which calls a stepped thread may write memory without a store, or change mappings.

#include <optional>

#include "ptrace/codecache/recorder/file_call.hpp"
#include "ptrace/codecache/space/stepped_memory.hpp"
#include "ptrace/source/call_watch.hpp"

namespace backtrail::tracee::cache {

class FileWatch final : public CallWatch {
 public:
  /// Borrows the process.
  explicit FileWatch(Process& process) : process_{process} {}

  void begin(Thread& thread) override;
  void end(Thread& thread) override;
  void ran_unseen() override;
  std::vector<decoder::ValueFact> tell_memory(arch::ValueKind kind) override;
  std::vector<decoder::ValueFact> tell_all_memory() override;
  void forget_told() override { told_ = {}; }
  void code_written(TraceeAddr begin, TraceeAddr end) override;

 private:
  void change_mappings(const MappingChange& change);

  Process& process_;
  std::optional<FileCall> call_;
  std::optional<MappingChange> mappings_;
  bool in_call_ = false;
  ConstantRanges::Told told_;
};

}  // namespace backtrail::tracee::cache
