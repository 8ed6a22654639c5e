#pragma once
/// @file
/// The `cache` source: the thread runs translated code that logs its branches. Whatever cannot be
/// translated is stepped, one instruction at its native address, as the `step` source does it.

#include <array>
#include <csignal>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include <sys/resource.h>

#include "arch/x86/raw_registers.hpp"
#include "arch/x86/translate/program_state.hpp"
#include "decoder/cachelog/cache_log.hpp"
#include "ptrace/codecache/recorder/file_call.hpp"
#include "ptrace/codecache/space/busy_log.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/codecache/syscalls/syscall_policy.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/source/step_source.hpp"

namespace backtrail::tracee {

/// Whenever a stop is reported, the thread's registers are native ones and nothing of the cache is
/// in them: to everybody else it is a stepped thread.
class CacheSource final : public StepSource {
 public:
  /// As StepSource. `history_bytes`: how much of the newest log is kept at least.
  CacheSource(Process& process, decoder::TraceConsumer& sink, std::uint64_t history_bytes,
              const TraceConfig& config = {});
  ~CacheSource() override;
  CacheSource(const CacheSource&) = delete;
  CacheSource& operator=(const CacheSource&) = delete;

  [[nodiscard]] SourceKind kind() const override { return SourceKind::kCache; }
  Result<void> resume(Thread& thread, const SourceResume& how) override;
  StopVerdict on_stop(Thread& thread, const WaitStatus& status) override;
  [[nodiscard]] pid_t trace_request() const override { return trace_request_; }
  [[nodiscard]] bool may_ask() const override { return may_ask_; }
  bool serve(Thread& thread) override;
  void let_wait() override;
  void on_breakpoint(TraceeAddr address) override;
  void on_code_written(TraceeAddr begin, TraceeAddr end) override;
  void pin(std::uint64_t id, std::uint32_t ahead) override;
  void flush() override;
  void forget() override;
  std::uint64_t keep_newest(std::uint64_t branches) override;
  std::unique_ptr<decoder::CacheLog> take_log_of_ended() override;
  Result<void> stream(std::uint64_t size_bytes) override;
  [[nodiscard]] bool streams() const override { return streams_; }
  void end_stream() override { streams_ = false; }
  void detach(Thread& thread) override;
  [[nodiscard]] std::string statistics() const override;

 protected:
  void push(const decoder::Record& record) override;
  void ran_unseen() override;

 private:
  /// Sets the thread going in the cache; false when it has to be stepped.
  bool enter(Thread& thread);
  [[nodiscard]] bool may_enter(Thread& thread, const arch::x86::UserRegs& regs) const;
  bool set_up(Thread& thread);
  void give_up(std::string why);
  /// Likewise all threads of the process, which has a space.
  void forbid(const std::string& why);
  void drop_space();
  // cache_source_log.cpp
  void take_log(TraceeAddr log);
  /// Of the log, which the thread, which runs, writes to.
  void take_written();
  void take_numbers(std::span<const std::uint32_t> numbers);
  /// Nothing is in the log, and the thread does not run.
  void begin_log();
  /// The thread logs much: no more copies.
  void use_busy_log(Thread& thread);
  void set_log(const cache::LogRange& log);
  void hand_on();
  /// Where every record is kept: hands on what has been taken if that is much.
  void bound_undecoded();

  void add_statistics() const;
  /// There is no translation, for that reason.
  void no_body(arch::x86::translate::Special why);
  void set_inside(bool inside);
  /// Makes the other threads leave translated code.
  void call_out();
  [[nodiscard]] bool everybody_recorded() const;
  void note_system_call(Thread& thread, const SourceResume& how);
  /// The thread stops again before it executes anything, and others have had time.
  Result<void> let_others_go(Thread& thread, const SourceResume& how);
  /// Who has not left translated code by then does not stop at all, as in a call that cannot be
  /// interrupted.
  static constexpr unsigned kMostWaits = 20'000;
  /// One instruction at its native address, or what is in front of it.
  Result<void> go_natively(Thread& thread, const SourceResume& how);
  void look_for_sections(Thread& thread);

  // cache_source_tracing.cpp
  /// Whether the next instruction asks for a process of ours to be traced by another: notes which.
  bool asks_to_trace(Thread& thread);
  /// The thread asked its parent, which is this server, to trace it: the call succeeds unmade.
  void let_trace_itself(Thread& thread, const arch::x86::UserRegs& regs);

  // cache_source_writes.cpp
  /// What becomes of a thread that has stopped for writing quiet code; nothing: it has not.
  std::optional<StopVerdict> write_hit(Thread& thread, const WaitStatus& status);
  /// What the system call that comes next would not be let write, it is.
  void note_writes(Thread& thread, const arch::x86::UserRegs& regs);
  /// The next instruction opens a file, or writes one, or memory: it may be code.
  void begin_file_call(Thread& thread, const arch::x86::UserRegs& regs,
                       cache::SyscallEffect effect);
  void end_file_call(Thread& thread);
  /// A signal's frame may be written below the thread's stack pointer.
  void note_signal_frame(Thread& thread);
  /// The kernel was not let write what a call's arguments name.
  [[nodiscard]] bool hindered(const arch::x86::UserRegs& regs) const;
  /// The thread stands behind a call that has failed with EFAULT; if that was because of us it is
  /// to be made again.
  void make_call_again(Thread& thread);
  void note_mask(Thread& thread);
  /// What was to be written, is; by a thread that is there or not any more.
  void note_written(Thread* thread);
  void keep_awake(bool on);

  // cache_source_limits.cpp
  /// The next instruction sets the limit of address space, or asks for it.
  void begin_limit_call(Thread& thread, const arch::x86::UserRegs& regs, bool is_watched);
  /// It has, or has failed to, or not begun.
  void end_limit_call(Thread& thread);
  /// Sets the thread going with another call than it is about to make.
  bool change_call(Thread& thread, const arch::x86::UserRegs& regs,
                   const arch::x86::UserRegs& changed);
  void end_changed_call(Thread& thread);
  /// The next instruction locks memory: all that is mapped, but for ours.
  void begin_lock_call(Thread& thread, const arch::x86::UserRegs& regs);
  [[nodiscard]] bool may_lock_all(Thread& thread, std::uint64_t bytes) const;
  [[nodiscard]] bool is_own_limit(const cache::LimitCall& call) const;
  /// What the thread wants to have mapped is refused, or may have been, because of what is ours.
  [[nodiscard]] bool is_memory_wanted(Thread& thread, const WaitStatus& status);
  /// Nothing of ours is mapped any more before the thread goes on; true: others have to leave
  /// translated code first.
  bool memory_has_to_wait(Thread& thread);

  /// Nobody is in translated code, nor will be.
  void remove_memory(Thread& thread, cache::CacheSpace& space);

  // cache_source_filters.cpp
  /// The next instruction installs a filter.
  void begin_filter(Thread& thread, const arch::x86::UserRegs& regs);
  /// It has, or has failed to, or another one is next.
  void end_filter(Thread& thread);
  /// It may apply to other threads, too, at that moment: they have to leave translated code first.
  [[nodiscard]] bool filter_has_to_wait();
  void hold(bool on);

  // cache_source_signals.cpp
  bool is_fault_of_program(Thread& thread, siginfo_t& info) const;
  bool return_from_handler(Thread& thread);
  /// For translated code: what it must not do by itself.
  void note_slice();
  bool has_returned(Thread& thread, TraceeAddr pc);
  void note_returned();

  StopVerdict cache_stop(Thread& thread, const WaitStatus& status);
  StopVerdict miss(Thread& thread);
  /// Where the thread goes on that has no translation to go to; else why it has to leave.
  struct MissResult {
    std::optional<TraceeAddr> next;
    std::optional<arch::x86::translate::Special> why;
  };
  MissResult find_next(Thread& thread, TraceeAddr log);
  void count(const MissResult& result, TraceeAddr log);
  /// The ring is full.
  bool guard_hit(Thread& thread);
  [[nodiscard]] bool is_guard_fault(Thread& thread) const;
  /// What an instruction that has raised SIGSEGV wanted, the log's end where that is not known;
  /// nothing: the signal was sent.
  [[nodiscard]] std::optional<TraceeAddr> fault_at(Thread& thread) const;
  /// It was translated code's own: mask and action become what they were.
  bool take_fault(Thread& thread);
  [[nodiscard]] bool segv_blocked(Thread& thread) const;
  /// The thread stands behind the miss routine's trap, which was for us alone.
  bool take_trap(Thread& thread);
  /// Native registers again; the log is taken over.
  Result<void> leave(Thread& thread);
  /// `stopped` at that place; nothing: nowhere in translated code.
  [[nodiscard]] arch::x86::translate::ProgramState program_state(
      const std::optional<cache::CodePlace>& place, const arch::x86::UserRegs& stopped) const;
  [[nodiscard]] std::optional<decoder::LoggedExit> take_back_branch(
      arch::x86::translate::ProgramState& native);
  /// The first few branches of a superblock that was not left by an exit.
  void add_passed(const decoder::BlockView& block, std::size_t passed);
  [[nodiscard]] std::optional<TraceeAddr> miss_target(TraceeAddr log) const;
  StopVerdict step_natively(Thread& thread);

  Process& process_;
  decoder::TraceConsumer& sink_;
  std::uint64_t history_bytes_;
  bool drops_undecoded_;
  bool keeps_all_;  ///< Nothing undecoded is ever dropped: the thread waits instead.
  std::shared_ptr<SourceStatistics> sums_;  ///< Never empty.
  bool counts_;                             ///< Somebody wants sums.
  std::shared_ptr<cache::KeptStore> kept_store_;
  std::shared_ptr<cache::CacheSpace> space_;
  std::optional<cache::ThreadMemory> memory_;
  std::size_t slot_ = 0;
  std::unique_ptr<cache::BusyLog> busy_log_;  ///< What log_ may hold is in there.
  std::unique_ptr<decoder::CacheLog> log_;
  bool streams_ = false;   ///< Every record is wanted.
  bool is_blank_ = false;  ///< What of the log is not written shows.
  std::size_t taken_ = 0;  ///< So many of its entries already.
  bool in_cache_ = false;
  bool may_ask_ = false;
  std::optional<cache::MappingChange> mappings_pending_;  ///< Of a call that was begun.
  bool keeps_awake_ = false;                              ///< Likewise.
  struct FilterCall {
    std::optional<SeccompFilter> filter;  ///< Nothing: its memory cannot be read.
    std::optional<int> before;            ///< So many are in force.
  };
  std::optional<FilterCall> filter_call_;  ///< That comes next.
  unsigned waits_ = 0;
  struct LimitedCall {
    cache::LimitCall call;
    TraceeAddr behind;
    std::optional<rlimit> wanted;
    std::optional<rlimit> given;  ///< In its place.
  };
  std::optional<LimitedCall> limit_call_;     ///< Has been begun.
  pid_t trace_request_ = 0;                   ///< A thread that is to be traced by another than us.
  std::optional<cache::FileCall> file_call_;  ///< Has been begun.
  std::optional<arch::x86::UserRegs> changed_call_;  ///< Likewise; this is the program's.
  std::optional<arch::x86::UserRegs> mapping_call_;  ///< Likewise; it may be refused.
  bool holds_ = false;
  /// A handler returns into translated code.
  struct HandlerReturn {
    TraceeAddr at;  ///< Of the system call.
    TraceeAddr to;
    TraceeAddr stack;        ///< The program's stack pointer.
    std::uint64_t held = 0;  ///< By the slice, before.
  };
  std::optional<HandlerReturn> returning_;    ///< The thread may not have made the call yet.
  bool at_insn_ = false;                      ///< leave() found it in front of an instruction.
  std::optional<std::uint64_t> mask_before_;  ///< Of the step that has been begun.
  std::vector<cache::CacheSpace::WrittenPage> written_;  ///< By that step.
  std::string why_stepping_;
  std::uint64_t entries_ = 0;
  std::uint64_t misses_ = 0;
  TraceeAddr counted_at_;  ///< Where the log was at the last miss.
  std::uint64_t rings_ = 0;
  std::uint64_t native_steps_ = 0;
  std::uint64_t numbers_ = 0;
  std::array<std::uint64_t, 16> special_{};
  decoder::LogCounts counted_;
  std::uint64_t stepped_branches_ = 0;
};

}  // namespace backtrail::tracee
