// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The past of one program's threads: places in their traces, and moves between them.

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "decoder/past/timeline.hpp"
#include "decoder/trace/insn_cache.hpp"
#include "decoder/values/window.hpp"
#include "server/target/past_end.hpp"
#include "server/target/past_stops.hpp"
#include "server/target/register_slots.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

class PastValues;

/// Moves threads within their traces, and tells registers and memory at the places they get to.
class ProgramPast final : public PastControl {
 public:
  /// Both are borrowed.
  ProgramPast(PastEnd& end, const PastStops& stops);
  ~ProgramPast() override;

  // PastControl
  [[nodiscard]] bool in_past(ThreadId thread) const override;
  Result<void> go_back(ThreadId thread, tracee::ResumeKind how) override;
  void prefer(ThreadId thread) override { preferred_ = thread; }
  std::size_t read_memory(ThreadId thread, TraceeAddr address,
                          std::span<std::uint8_t> out) override;

  /// Returns the tids of threads for which in_past() is true.
  [[nodiscard]] std::vector<pid_t> threads_in_past() const;
  /// Returns the order of `orders` for a thread that is in the past and moves: one that is to be
  /// stepped, otherwise the preferred one. Null if there is none.
  static const ThreadResume* move_among(std::span<const ThreadResume> orders, ThreadId preferred,
                                        const PastControl& past);
  /// Moves the thread of move_among(). Returns false if there is none.
  bool go_forward(std::span<const ThreadResume> orders);
  /// Moves the thread, which is in the past.
  void go_forward(const ThreadResume& order);
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
  /// Returns the values of a thread; null if they cannot be recovered: for 32-bit programs, and
  /// threads that had ended.
  PastValues* values_of(ThreadId thread);
  /// Returns the known bits of a register at a place; none of threads without values.
  decoder::values::Known read_slot(ThreadId thread, const decoder::PastPosition& place,
                                   decoder::values::Slot slot);
  /// Copies memory at a place. Returns the number of known bytes before the first unknown one.
  [[nodiscard]] std::size_t read_at(ThreadId thread, const decoder::PastPosition& place,
                                    TraceeAddr address, std::span<std::uint8_t> out);

 private:
  struct ThreadPast;
  /// Returns nullptr if there is no such thread.
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
  std::size_t read_executed(ThreadId thread, const decoder::PastPosition& place, TraceeAddr address,
                            std::span<std::uint8_t> out);
  std::size_t read_constant(ThreadId thread, const decoder::PastPosition& place, TraceeAddr address,
                            std::span<std::uint8_t> out);

  PastEnd& end_;
  const PastStops& stops_;
  RegisterSlots slots_;
  decoder::InsnCache insns_;
  std::map<pid_t, std::unique_ptr<ThreadPast>> threads_;  ///< By tid.
  ThreadId preferred_;
  std::optional<tracee::StopEvent> event_;
  std::optional<std::string> message_;
};

}  // namespace backtrail::server
