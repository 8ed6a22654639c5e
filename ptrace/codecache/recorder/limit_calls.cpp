// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/limit_calls.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <utility>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/persist/fixed_addresses.hpp"
#include "ptrace/codecache/recorder/call_stop.hpp"
#include "ptrace/codecache/space/cache_space.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::translate::Slot;

using LimitBytes = std::array<std::uint8_t, sizeof(rlimit)>;

std::optional<rlimit> read_limit(Process& process, TraceeAddr at) {
  LimitBytes bytes{};
  if (process.read_memory(at, bytes) != bytes.size()) return std::nullopt;
  return std::bit_cast<rlimit>(bytes);
}

}  // namespace

bool LimitCalls::is_own_limit(const LimitCall& call, const ThreadMemory* memory) const {
  if (call.process == 0) return true;
  const auto id =
      memory != nullptr ? static_cast<pid_t>(memory->read(Slot::kProcessId)) : process_.pid();
  return call.process == id;
}

void LimitCalls::begin(Thread& thread, const arch::cpu::UserRegs& regs, const ThreadMemory* memory,
                       bool is_watched, ChangedCall& changed) {
  const auto is = limit_call_of(regs);
  if (!is || !is_own_limit(*is, memory)) return;
  const TraceeAddr after = regs.pc() + arch::cpu::kSyscallInsnBytes;
  call_ = Call{.is = *is, .after = after, .wanted = {}, .given = {}};
  if (is->new_at == TraceeAddr{}) return;
  if (keeps_translations_) give_room_back(thread);
  call_->wanted = read_limit(process_, is->new_at);
  const auto& space = process_.cache_space;
  // A debugger must see the program's own call; the limit is then raised afterwards.
  if (!call_->wanted || memory == nullptr || !space || space->memory().removed() || is_watched) {
    return;
  }
  const rlimit given = process_.address_limit.raised(*call_->wanted);
  const auto bytes = std::bit_cast<LimitBytes>(given);
  std::copy(bytes.begin(), bytes.end(), memory->scratch(CacheMemory::kLimitOffset));
  arch::cpu::UserRegs raised = regs;
  arch::cpu::set_syscall_argument(raised, is->new_in,
                                  (memory->page() + CacheMemory::kLimitOffset).value());
  if (changed.begin(thread, regs, raised)) call_->given = given;
}

void LimitCalls::end(Thread& thread) {
  if (!call_ || thread.in_syscall()) return;
  const Call made = *std::exchange(call_, std::nullopt);
  const auto regs = thread.user_regs();
  if (!regs) return;
  if (!has_made_call(thread, *regs, made.after) || syscall_result(*regs) != 0) return;
  AddressLimit& limit = process_.address_limit;
  if (limit.program() && made.is.old_at != TraceeAddr{}) {
    (void)process_.write_data(made.is.old_at, std::bit_cast<LimitBytes>(*limit.program()));
  }
  if (!made.wanted) return;
  limit.note_set(process_.pid(), *made.wanted, made.given.value_or(*made.wanted));
  if (process_.cache_space) process_.cache_space->note_limit();
}

}  // namespace backtrail::tracee::cache
