// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Serves the misses of one thread: of a stopped one, and of one that asks in shared memory.

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/recorder/cache_counts.hpp"
#include "ptrace/codecache/recorder/misses.hpp"
#include "ptrace/codecache/recorder/thread_part.hpp"
#include "ptrace/codecache/space/constant_ranges.hpp"
#include "ptrace/source/source_statistics.hpp"
#include "ptrace/source/stepper.hpp"

namespace backtrail::tracee::cache {

class MissService {
 public:
  /// All arguments must outlive the object.
  /// @param told     What the thread has been told of the space's constant memory.
  /// @param serving  Gets the time of answers to requests; nullptr: it is not wanted.
  MissService(Process& process, ThreadPart& part, Stepper& stepper, CacheCounts& counts,
              const ConstantRanges::Told& told, SourceStatistics::Time* serving)
      : process_{process},
        part_{part},
        stepper_{stepper},
        counts_{counts},
        told_{told},
        serving_{serving} {}

  /// Tells whether requests will be looked for as often as possible from the next let_ask() on.
  void expect_service(bool on) { is_served_ = on; }
  /// Returns true if the thread asks in shared memory instead of stopping.
  [[nodiscard]] bool may_ask() const { return may_ask_; }
  /// Call when a miss of the stopped thread has been served, because it is likely to miss again
  /// soon, or when there is something to be done ahead while it runs.
  void let_ask(Thread& thread);
  /// From here on the thread stops at a miss.
  void let_wait();
  /// Answers the thread's request; returns false if there is none.
  bool serve(Thread& thread);
  /// Translates a part of what the thread is likely to need next; returns false if there is nothing
  /// more to do.
  bool work_ahead();
  /// Finds where the thread goes on after a miss; neither a place nor a reason if translated code
  /// must be left anyhow, or if the thread is to be told of constant memory where it enters again.
  MissAnswer find_next(Thread& thread, TraceeAddr log);
  /// Call where code has no translation: requests room if that is why.
  void note_untranslated(arch::cpu::translate::UntranslatableReason why);
  /// Looks for the restartable sequence that the stopped thread is in.
  void look_for_sections(Thread& thread);

 private:
  Process& process_;
  ThreadPart& part_;
  Stepper& stepper_;
  CacheCounts& counts_;
  const ConstantRanges::Told& told_;
  SourceStatistics::Time* serving_;
  bool is_served_ = false;
  bool may_ask_ = false;
};

}  // namespace backtrail::tracee::cache
