// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/thread_parts.hpp"

#include <cstdint>
#include <utility>

#include <sys/syscall.h>

#include "arch/cpu/translator.hpp"
#include "ptrace/os/id_namespace.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;

}  // namespace

Result<std::size_t> ThreadParts::take(Thread& thread) {
  const auto is_area = [this](std::size_t slot) {
    return slot >= memory_.first_area_part() && slot < memory_.parts_at_once();
  };
  const std::size_t most = kMostChunks * memory_.parts_at_once();
  std::size_t slot = 0;
  while (slot < most && (taken_.test(slot) || is_area(slot))) ++slot;
  if (slot == most) return fail(TraceErrc::kBusy, "log of a further thread", most);
  if (!std::exchange(first_is_ready_, false)) {
    BT_CHECKED(memory_.prepare_thread(thread, slot));
    BT_CHECKED(write_ids(thread, memory_.thread(slot)));
  }
  note_way_to_stop(slot);
  taken_.set(slot);
  return slot;
}

void ThreadParts::give_back(std::size_t slot) {
  memory_.set_log(slot, std::nullopt);
  taken_.reset(slot);
  inside_.reset(slot);
}

Result<std::size_t> ThreadParts::take_area(Thread& thread) {
  if (free_areas_.empty()) return memory_.add_area(thread);
  const std::size_t area = free_areas_.back();
  free_areas_.pop_back();
  return area;
}

void ThreadParts::stop_by_fault() {
  stop_by_fault_ = true;
  for (std::size_t slot = 0; slot < kMaxThreads; ++slot) {
    if (taken_.test(slot)) note_way_to_stop(slot);
  }
}

void ThreadParts::note_way_to_stop(std::size_t slot) {
  ThreadMemory memory = memory_.thread(slot);
  memory.write(translate::Slot::kStopsByFault, stop_by_fault_ ? 1 : 0);
  memory.write(translate::Slot::kMaskAt,
               memory.page().value() + static_cast<std::uint64_t>(translate::Slot::kMask));
  memory.write(translate::Slot::kFrameAt,
               memory.page().value() + static_cast<std::uint64_t>(translate::Slot::kFrame));
}

Result<void> ThreadParts::write_ids(Thread& thread, ThreadMemory memory) {
  auto pid = static_cast<std::uint64_t>(thread.process().pid());
  auto tid = static_cast<std::uint64_t>(thread.tid());
  if (!same_ids_) same_ids_ = shares_our_ids(process_.pid());
  // A child that shares the memory may be in another pid namespace.
  const pid_t of = thread.process().pid();
  if (!(of == process_.pid() ? *same_ids_ : shares_our_ids(of))) {
    BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
    BT_TRY(pid, remote.call(SYS_getpid, {}));
    BT_TRY(tid, remote.call(SYS_gettid, {}));
  }
  memory.write32(translate::Slot::kProcessId, static_cast<std::uint32_t>(pid));
  memory.write32(translate::Slot::kThreadId, static_cast<std::uint32_t>(tid));
  return {};
}

}  // namespace backtrail::tracee::cache
