// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The `cache` source: the thread runs translated code, which logs its branches. An untranslatable
/// instruction is stepped at its native address, as by the `step` source.

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "arch/cpu/registers.hpp"
#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/cache_log.hpp"
#include "ptrace/codecache/recorder/cache_counts.hpp"
#include "ptrace/codecache/recorder/call_interceptor.hpp"
#include "ptrace/codecache/recorder/code_write_guard.hpp"
#include "ptrace/codecache/recorder/entry_conditions.hpp"
#include "ptrace/codecache/recorder/handler_return.hpp"
#include "ptrace/codecache/recorder/miss_service.hpp"
#include "ptrace/codecache/recorder/misses.hpp"
#include "ptrace/codecache/recorder/thread_facts.hpp"
#include "ptrace/codecache/recorder/thread_log.hpp"
#include "ptrace/codecache/recorder/thread_part.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/source/record_batch.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/source/stepper.hpp"

namespace backtrail::tracee {

/// Records a thread by running translated code. At every reported stop the thread's registers are
/// native, as those of a stepped thread: nothing outside the recorder sees the code cache.
class CacheSource final : public BranchSource, private StepperUser {
 public:
  /// `sink` gets the records; borrowed, must outlive the source. The thread's position is unknown
  /// until its first stop. At least the newest `history_bytes` of the log are kept.
  CacheSource(Process& process, decoder::TraceConsumer& sink, std::uint64_t history_bytes,
              const TraceConfig& config = {});
  ~CacheSource() override;
  CacheSource(const CacheSource&) = delete;
  CacheSource& operator=(const CacheSource&) = delete;

  [[nodiscard]] SourceKind kind() const override { return SourceKind::kCache; }
  [[nodiscard]] bool sees_calls() const override { return true; }
  /// Begins recording of the thread, which is stopped at `pc`.
  void start_at(TraceeAddr pc) { stepper_.start_at(pc); }
  Result<void> resume(Thread& thread, const SourceResume& how) override;
  StopVerdict on_stop(Thread& thread, const WaitStatus& status) override;
  [[nodiscard]] pid_t trace_request() const override { return calls_.trace_request(); }
  [[nodiscard]] bool may_ask() const override { return misses_.may_ask(); }
  void expect_service(bool on) override { misses_.expect_service(on); }
  bool serve(Thread& thread) override;
  void let_wait() override {
    misses_.let_wait();
    while (misses_.work_ahead()) {
    }
  }
  bool work_ahead(Thread& /*thread*/) override {
    return misses_.work_ahead() || log_.prepare_next();
  }
  [[nodiscard]] std::optional<SignalSlice::Clock::time_point> stop_due() const override;
  [[nodiscard]] std::uint64_t held_signals() const override;
  void on_pc_written(TraceeAddr from, TraceeAddr to) override { stepper_.pc_written(from, to); }
  void on_breakpoint(TraceeAddr address) override;
  void on_code_written(TraceeAddr begin, TraceeAddr end) override;
  void pin(std::uint64_t id, std::uint32_t ahead) override;
  void flush() override;
  void forget() override;
  std::uint64_t keep_newest(std::uint64_t branches) override;
  std::unique_ptr<decoder::CacheLog> take_log_of_ended() override;
  Result<void> stream(std::uint64_t size_bytes) override;
  [[nodiscard]] bool streams() const override { return log_.streams(); }
  void end_stream() override { log_.end_stream(); }
  void detach(Thread& thread) override;
  Result<std::size_t> translate_ahead(Thread& thread, std::uint64_t most_bytes) override;
  [[nodiscard]] std::string statistics() const override;

 private:
  void push(const decoder::Record& record) override;
  /// Adds a record, or a pin, to the log or to the batch.
  void add(const decoder::Record& record);
  void executed(TraceeAddr pc, const decoder::ExecutedInsn& insn) override {
    facts_.executed(pc, insn);
  }
  void flush_records() override { flush(); }
  void go_on(Thread& thread, const SourceResume& how) override;
  void ran_unseen() override;

  /// Resumes the thread in translated code; returns false if it must be stepped.
  bool enter(Thread& thread);
  bool set_up(Thread& thread);
  void drop_space();
  /// Ends translated code in the process if the program has written to the recorder's memory.
  void look_for_damage();
  /// Takes the entries of the stopped thread's log up to the log pointer `log`.
  void take_log(TraceeAddr log);
  /// Hands on all records so far.
  void hand_on();
  /// Resumes the thread so that it stops again before it executes an instruction.
  Result<void> stop_again(Thread& thread, const SourceResume& how);
  /// Executes one instruction at its native address, or first lets the thread wait for others.
  Result<void> go_natively(Thread& thread, const SourceResume& how);

  /// Handles a stop caused by a write to a write-protected page; nullopt for other stops.
  std::optional<StopVerdict> write_hit(Thread& thread, const WaitStatus& status);
  /// The thread stands before a system call in its native state. Returns true if that is
  /// rt_sigreturn and the thread has been resumed with it.
  bool return_from_handler(Thread& thread);
  /// Call when a thread that was to return from a handler has stopped. Returns false if it has not
  /// returned; the thread is then in its native state.
  bool has_returned(Thread& thread, TraceeAddr pc);
  void note_returned();

  StopVerdict cache_stop(Thread& thread, const WaitStatus& status);
  StopVerdict miss(Thread& thread);
  /// Call after a miss that leads nowhere: the thread leaves translated code.
  StopVerdict missed(Thread& thread, const cache::MissAnswer& found);
  /// Handles a full log.
  bool guard_hit(Thread& thread);
  /// Restores native registers and takes the log.
  Result<void> leave(Thread& thread);

  Process& process_;
  bool drops_undecoded_;
  std::shared_ptr<SourceStatistics> sums_;  ///< Never null.
  bool measures_;                           ///< Statistics are wanted.
  ValueDepth values_;
  std::shared_ptr<cache::PersistentStore> persistent_store_;
  std::shared_ptr<cache::SpareMemory> spare_;
  RecordBatch batch_;
  Stepper stepper_;
  cache::ThreadPart part_;
  cache::ThreadLog log_;
  cache::ThreadFacts facts_;
  cache::EntryConditions conditions_;
  cache::CallInterceptor calls_;
  cache::CodeWriteGuard write_guard_;
  cache::HandlerReturn handler_return_;
  bool at_insn_ = false;  ///< leave() found the thread before an instruction.
  cache::CacheCounts counts_;
  cache::MissService misses_;
};

}  // namespace backtrail::tracee
