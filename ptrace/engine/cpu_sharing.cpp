// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/cpu_sharing.hpp"

#include <algorithm>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/source/branch_source.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {
namespace {

/// Returns true if the thread's affinity may be narrowed while its source sees its calls.
bool may_pin(Thread& thread) {
  const BranchSource* source = thread.source();
  return source != nullptr && source->sees_calls() &&
         thread.process().own_affinity.may_be_narrowed();
}

/// Returns true if the thread's affinity may be narrowed while it stops for the client's sake:
/// nobody in its process can see that before the engine does (CpuSharing::hide()).
bool may_pin_for_client(Thread& thread) {
  if (may_pin(thread)) return true;
  const BranchSource* source = thread.source();
  const auto& threads = thread.process().threads();
  return (source == nullptr || !source->sees_calls()) &&
         thread.process().isa() == arch::Isa::kAmd64 &&
         std::all_of(threads.begin(), threads.end(),
                     [&](const auto& each) { return each.get() == &thread || each->stopped(); });
}

}  // namespace

void CpuSharing::note_signal(Thread& thread) {
  if (!settings_.follows_signals) return;
  stop_cpu_.note_stop(thread.cpu_pin(), may_pin(thread), StopCpu::Clock::now());
}

void CpuSharing::note_short_stop(Thread& thread) {
  if (!may_pin_for_client(thread)) return;
  stop_cpu_.note_stop(thread.cpu_pin(), true, StopCpu::Clock::now());
}

void CpuSharing::note_step(Thread& thread) {
  if (!may_pin_for_client(thread)) return;
  stop_cpu_.note_stop(thread.cpu_pin(), true, StopCpu::Clock::now(), StopCpu::kBetweenSteps);
  // The client may do nothing more for long.
  if (stop_cpu_.narrows()) wake_ups_.wake_soon();
}

void CpuSharing::look() {
  stop_cpu_.look();
  if (stop_cpu_.narrows() && !settings_.follows_signals) wake_ups_.wake_soon();
}

bool CpuSharing::hide(Thread& thread, bool step, bool in_call) {
  if (!stop_cpu_.narrows()) return false;
  const BranchSource* source = thread.source();
  if (source != nullptr && source->sees_calls()) return false;
  const bool unseen = source != nullptr && !step;  // hardware records, and sees no call
  const bool calls = in_call || (step && arch::cpu::is_syscall(thread.process().insn_bytes(
                                             thread.pc().value_or(TraceeAddr{}))));
  if (!thread.cpu_pin()->active() || unseen || calls) {
    stop_cpu_.go_back();
    return false;
  }
  // The thread may run for long, without a stop at which its affinity could be restored.
  if (step) {
    stop_cpu_.expect_stop();
  } else {
    wake_ups_.wake_soon();
  }
  return !step;
}

}  // namespace backtrail::tracee
