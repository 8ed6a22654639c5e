// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The past of a dead program's threads: places in their traces, and moves between them.

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/past/archive_records.hpp"
#include "decoder/past/timeline.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/values/window.hpp"
#include "ptrace/core/core_memory.hpp"
#include "server/target/core_pages.hpp"
#include "server/target/core_traces.hpp"
#include "server/target/past_watches.hpp"
#include "server/target/register_slots.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

class CoreValues;

/// Moves threads within their traces, and tells registers and memory at the places they get to.
class CorePast final : public PastControl {
 public:
  /// All are borrowed.
  CorePast(const decoder::CoreFile& core, tracee::CoreMemory& memory, const CoreTraces& traces,
           const arch::cpu::GdbRegisterSet& registers);
  ~CorePast() override;

  // PastControl
  [[nodiscard]] bool in_past(ThreadId thread) const override;
  Result<void> go_back(ThreadId thread, tracee::ResumeKind how) override;
  void prefer(ThreadId thread) override { preferred_ = thread; }
  std::size_t read_memory(ThreadId thread, TraceeAddr address,
                          std::span<std::uint8_t> out) override;

  /// Moves one thread of `orders` that is in the past forward: one that is to be stepped, otherwise
  /// the preferred one. Returns false if there is no such thread.
  bool go_forward(std::span<const ThreadResume> orders);
  /// Takes the event that ended the last move; nullopt if there is none.
  std::optional<tracee::StopEvent> take_event();
  /// Takes the message for the user about the last move; nullopt if there is none.
  std::optional<std::string> take_message();

  /// Puts the known registers at a thread's place in the past into `raw`.
  /// @return Whether each is known, by gdb's number; the pc always is.
  std::vector<bool> read_registers(ThreadId thread, arch::cpu::RawRegisters& raw);

  /// Finds a place after a record of a thread's trace, without a gap or a signal in between.
  /// @param newer  The number of records after that one.
  /// @param pc     The place's instruction.
  /// @param most   Number of instructions looked at after the first one.
  std::optional<decoder::PastPosition> find_after(ThreadId thread, std::uint64_t newer,
                                                  TraceeAddr pc, std::size_t most);
  /// Finds the place after a return; nullopt if the record is none, or nothing ran after it.
  std::optional<decoder::PastPosition> find_return(ThreadId thread, std::uint64_t newer);
  /// Returns the values of a thread of the core; null if they cannot be recovered: for 32-bit
  /// programs, and threads that had ended.
  CoreValues* values_of(ThreadId thread);
  /// Returns the known bits of a register at a place; none of threads without values.
  decoder::values::Known read_slot(ThreadId thread, const decoder::PastPosition& place,
                                   decoder::values::Slot slot);
  /// Copies memory at a place. Returns the number of known bytes before the first unknown one.
  [[nodiscard]] std::size_t read_at(ThreadId thread, const decoder::PastPosition& place,
                                    TraceeAddr address, std::span<std::uint8_t> out);

  /// Error kUnsupported for access watchpoints: reads leave no trace.
  Result<void> insert(const tracee::BreakpointSpec& breakpoint);
  void remove(const tracee::BreakpointSpec& breakpoint);

 private:
  struct ThreadPast;
  /// Returns nullptr if the core has no such thread.
  ThreadPast* past_of(ThreadId thread);
  void move_to(ThreadId thread, ThreadPast& past, const decoder::PastPosition& place,
               bool crossed_gap);
  void step_forward(ThreadId thread, ThreadPast& past, const tracee::ResumeAction& action);
  void run(ThreadId thread, ThreadPast& past, bool back);
  void run_watched(ThreadId thread, ThreadPast& past, bool back);
  std::optional<decoder::Timeline::Search> search_unknown(ThreadId thread, ThreadPast& past,
                                                          const decoder::PastPosition& place,
                                                          bool back);
  void stop(ThreadId thread, tracee::StopKind kind);
  [[nodiscard]] tracee::StopKind breakpoint_kind(TraceeAddr pc) const;

  const decoder::CoreFile& core_;
  tracee::CoreMemory& memory_;
  const CoreTraces& traces_;
  const arch::cpu::GdbRegisterSet& registers_;
  RegisterSlots slots_{registers_};
  CorePages pages_;
  decoder::InsnCache insns_;
  std::map<pid_t, std::unique_ptr<ThreadPast>> threads_;  ///< By tid.
  std::set<TraceeAddr> stops_;           ///< Addresses with a breakpoint of either kind.
  std::set<TraceeAddr> software_stops_;  ///< Addresses with a software breakpoint.
  std::set<TraceeAddr> hardware_stops_;
  PastWatches watches_;
  ThreadId preferred_;
  std::optional<tracee::StopEvent> event_;
  std::optional<std::string> message_;
};

}  // namespace backtrail::server
