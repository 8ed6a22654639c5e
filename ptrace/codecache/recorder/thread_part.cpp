// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/thread_part.hpp"

#include "ptrace/codecache/space/space_sharing.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {

Result<void> ThreadPart::take(std::shared_ptr<CacheSpace> space, Thread& thread) {
  const std::size_t before = space->memory().ranges().size();
  BT_TRY(slot_, space->threads().take(thread));
  // Translated code must not make calls itself that name new memory of the recorder.
  if (space->memory().ranges().size() != before) {
    for (CacheSpace* each : spaces_in_memory_of(thread.process())) each->mappings_changed();
  }
  space_ = std::move(space);
  memory_ = space_->memory().thread(slot_);
  return {};
}

void ThreadPart::give_back() {
  if (!space_) return;
  space_->threads().give_back(slot_);
  memory_.reset();
  space_.reset();
  inside_ = false;
}

void ThreadPart::set_inside(bool inside) {
  inside_ = inside;
  // The thread, or an earlier owner of the part, may have been stopped while it waited.
  memory_->drop_request();
  space_->threads().set_inside(slot_, inside);
}

}  // namespace backtrail::tracee::cache
