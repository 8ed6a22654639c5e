// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Moves backward and forward in the recorded history of a target's threads.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/tracee/resume_action.hpp"
#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::server {

/// Set of gdb's registers that have a known value.
class KnownRegisters {
 public:
  /// Makes the set of all registers.
  KnownRegisters() = default;
  /// @param known  By gdb's register number; registers beyond its end are not known.
  explicit KnownRegisters(std::vector<bool> known) : all_{false}, known_{std::move(known)} {}

  [[nodiscard]] bool has(std::size_t number) const {
    return all_ || (number < known_.size() && known_[number]);
  }

 private:
  bool all_ = true;
  std::vector<bool> known_;
};

/// Gives each thread a position in its own history. At the end of the history the thread is live;
/// before it the thread is "in the past", and reads return past registers and memory as far as they
/// are known. Each move ends with an event of RunControl::take_event().
class PastControl {
 public:
  virtual ~PastControl() = default;
  [[nodiscard]] virtual bool in_past(tracee::ThreadId thread) const = 0;
  /// Undoes one instruction (kStep), or instructions until the next one to execute has a breakpoint
  /// (kContinue).
  /// Events: kStep, kSoftwareBreakpoint, kHistoryBegin. Error kNotFound: no such thread.
  virtual Result<void> go_back(tracee::ThreadId thread, tracee::ResumeKind how) = 0;
  /// Selects the thread that forward moves without a thread of their own apply to.
  virtual void prefer(tracee::ThreadId thread) = 0;
  /// Reads memory as it was at the thread's position. Returns how many bytes from `address` on are
  /// known.
  virtual std::size_t read_memory(tracee::ThreadId thread, TraceeAddr address,
                                  std::span<std::uint8_t> out) = 0;
  /// Returns true if threads run on at the end of their history.
  [[nodiscard]] virtual bool lives_on() const { return false; }
  /// Returns a text for people: why registers and memory cannot be written.
  [[nodiscard]] virtual std::string_view why_unchangeable() const {
    return "a recorded crash cannot be changed";
  }
};

}  // namespace backtrail::server
