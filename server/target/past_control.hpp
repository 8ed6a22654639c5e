#pragma once
/// @file
/// Going back and forth in what was recorded of a target's threads.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/tracee/resume_action.hpp"
#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::server {

/// Which of gdb's registers have a known value.
class KnownRegisters {
 public:
  /// All of them.
  KnownRegisters() = default;
  /// @param known  By gdb's register number; numbers beyond are not known.
  explicit KnownRegisters(std::vector<bool> known) : all_{false}, known_{std::move(known)} {}

  [[nodiscard]] bool has(std::size_t number) const {
    return all_ || (number < known_.size() && known_[number]);
  }

 private:
  bool all_ = true;
  std::vector<bool> known_;
};

/// Each thread has a place in its own history. At the end of it the thread is what it is; before,
/// it is "in the past", where registers and memory are shown as they were, as far as that is known.
/// Moves end with an event of RunControl::take_event().
class PastControl {
 public:
  virtual ~PastControl() = default;
  [[nodiscard]] virtual bool in_past(tracee::ThreadId thread) const = 0;
  /// Undoes one instruction (kStep), or instructions until one at a breakpoint is next (kContinue).
  /// Events: kStep, kSoftwareBreakpoint, kHistoryBegin. Error kNotFound: no such thread.
  virtual Result<void> go_back(tracee::ThreadId thread, tracee::ResumeKind how) = 0;
  /// Forward moves without a thread of their own are this one's.
  virtual void prefer(tracee::ThreadId thread) = 0;
  /// Memory as `thread` saw it at its place; how many bytes from `address` on are known.
  virtual std::size_t read_memory(tracee::ThreadId thread, TraceeAddr address,
                                  std::span<std::uint8_t> out) = 0;
};

}  // namespace backtrail::server
