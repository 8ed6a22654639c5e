// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/miss_service.hpp"

#include "ptrace/codecache/recorder/fellow_threads.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

using arch::cpu::translate::Slot;
using arch::cpu::translate::UntranslatableReason;

void MissService::let_ask(Thread& thread) {
  may_ask_ = is_served_ && stepper_.rseq_area_known();
  part_.memory().write(Slot::kRseqArea, stepper_.rseq_area(thread).value_or(TraceeAddr{}).value());
  part_.memory().write(Slot::kServed, may_ask_ ? 1 : 0);
  // The next miss is another stop, which costs as much as translating several superblocks.
  if (!may_ask_) part_.space().code().make_all_next();
}

void MissService::let_wait() {
  may_ask_ = false;
  if (part_) part_.memory().write(Slot::kServed, 0);
}

bool MissService::serve(Thread& thread) {
  if (!may_ask_ || !part_.inside() || !part_.memory().take_request()) return false;
  const StatisticsTimer timer{serving_};
  const TraceeAddr log{part_.memory().read(Slot::kLog)};
  const MissAnswer found = find_next(thread, log);
  if (found.next) {
    counts_.note_miss(log, found.why);
    part_.memory().answer(*found.next);
  } else {
    part_.memory().refuse();  // it then stops, for the same reason
  }
  return true;
}

bool MissService::work_ahead() {
  // Changed mappings are left to the next miss.
  if (!part_.inside() || !part_.space().is_open() || !part_.space().is_current() ||
      !everybody_recorded(process_)) {
    return false;
  }
  const StatisticsTimer timer{serving_};
  return part_.space().code().make_next();
}

MissAnswer MissService::find_next(Thread& thread, TraceeAddr log) {
  if (!part_.space().is_open() || !everybody_recorded(process_) || !part_.space().refresh()) {
    return {};
  }
  // A thread inside a section does not ask: it stops (DispatchStub).
  if (thread.stopped()) look_for_sections(thread);
  const MissAnswer found = answer_miss(process_, part_.space(), part_.memory(), log);
  if (found.why) note_untranslated(*found.why);
  if (found.next && part_.space().constant().has_news(told_)) return {};
  return found;
}

void MissService::note_untranslated(UntranslatableReason why) {
  if (why == UntranslatableReason::kNone) part_.space().want_room();
}

void MissService::look_for_sections(Thread& thread) {
  if (const auto area = stepper_.rseq_area(thread)) part_.space().look_for_section_of(*area);
}

}  // namespace backtrail::tracee::cache
