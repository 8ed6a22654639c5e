// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells what code a stepped thread executed, and since when its memory has been constant.

#include <optional>
#include <vector>

#include "decoder/cachelog/executed_code.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "decoder/trace/executed_insn.hpp"
#include "ptrace/source/call_watch.hpp"
#include "ptrace/source/record_batch.hpp"

namespace backtrail::tracee {

/// Adds facts to a thread's batch of records. The bytes of all instructions are told: readers leave
/// out those that are in constant memory at the end (decoder::FactRing).
class StepFacts {
 public:
  /// Borrows both.
  StepFacts(RecordBatch& batch, CallWatch& memory) : batch_{batch}, memory_{memory} {}

  /// Call before the thread is resumed.
  void resume();
  /// As resume(), where nobody needs facts yet.
  void resume_untold() { has_run_ = true; }
  /// Call for each instruction that was executed, before its record.
  void executed(TraceeAddr pc, const decoder::ExecutedInsn& insn);
  /// Call for each record before it is added to the batch.
  void push(const decoder::Record& record);
  /// Call before the batch is handed on.
  void flush();
  /// Call when the records and facts of the batch were dropped, or others tell facts from now on.
  void forget();

 private:
  void add(const std::vector<decoder::ValueFact>& facts);
  void add_code();

  RecordBatch& batch_;
  CallWatch& memory_;
  decoder::ExitTable exits_;  ///< Empty: there are no superblocks.
  std::optional<decoder::ExecutedCode> code_{exits_};
  std::vector<decoder::ValueFact> facts_;
  bool has_run_ = false;  ///< Instructions were executed since the records begin.
};

}  // namespace backtrail::tracee
