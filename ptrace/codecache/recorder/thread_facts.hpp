// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What one thread's records tell besides its branches: values around system calls and signals, the
/// code that it stepped through, and which memory is constant.

#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "decoder/trace/executed_insn.hpp"
#include "decoder/trace/record.hpp"
#include "decoder/trace/value_fact.hpp"
#include "ptrace/codecache/recorder/call_facts.hpp"
#include "ptrace/codecache/recorder/signal_facts.hpp"
#include "ptrace/codecache/space/constant_ranges.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/step_facts.hpp"

namespace backtrail::tracee {
class Thread;
}

namespace backtrail::tracee::cache {

class ThreadLog;
class ThreadPart;

/// Adds facts to the thread's log while that is open, and to its batch of records otherwise. A
/// thread without a log tells no values, only its code and constant memory.
class ThreadFacts {
 public:
  /// Borrows all but `values`.
  /// @param stepped_memory  watches the memory of a thread without a log
  ThreadFacts(ThreadPart& part, ThreadLog& log, RecordBatch& batch, CallWatch& stepped_memory,
              ValueDepth values)
      : part_{part}, log_{log}, step_facts_{batch, stepped_memory}, values_{values} {}

  /// Call when the log has been opened.
  void begin_log();
  /// Call after an exec. The log must be closed.
  void begin_program();
  /// Call when all records were dropped.
  void forget();

  // Before the thread runs:

  /// Call when it enters translated code. All that it executed so far must be in the log, which
  /// must not end with an indirect branch.
  void enter();
  /// Call when it is about to make a system call natively.
  void begin_call(const arch::cpu::UserRegs& regs);
  /// Call when no signal is on its way to the thread, or before begin_signal().
  void forget_signal() { signal_facts_.forget(); }
  /// Call when it is about to get a signal.
  void begin_signal(Thread& thread);
  /// Call last before it executes an instruction at its native address.
  /// @param for_good  the thread will not run translated code any more
  void begin_step(bool for_good);

  /// Call when the thread has stopped after running natively.
  void stop(Thread& thread);
  /// Call for each instruction that was stepped, before its record.
  void executed(TraceeAddr pc, const decoder::ExecutedInsn& insn);
  /// Call before and after a record is added to the log or the batch.
  void before(const decoder::Record& record);
  void after(const decoder::Record& record);

  /// Call before records are handed on: tells what memory is not constant any more.
  void tell_lost_memory();
  /// Call before records are handed on to consumers that may be new.
  void flush();

  /// Constant memory of the space that the thread has been told of.
  [[nodiscard]] const ConstantRanges::Told& memory_told() const { return memory_told_; }

 private:
  /// Tells what memory is constant, at the present place.
  void tell_memory();
  /// Adds facts at the present place of the log; drops them if there is none.
  void add(const std::vector<decoder::ValueFact>& facts);
  [[nodiscard]] bool is_told_delivery(const decoder::Record& record) const;

  ThreadPart& part_;
  ThreadLog& log_;
  StepFacts step_facts_;  ///< Used while the thread has no log.
  ValueDepth values_;
  CallFacts call_facts_;
  SignalFacts signal_facts_;
  ConstantRanges::Told memory_told_;
  unsigned steps_without_log_ = 0;
  bool tells_steps_ = false;
  bool has_run_ = false;  ///< The thread has executed instructions since the object was made.
};

}  // namespace backtrail::tracee::cache
