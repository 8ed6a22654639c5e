// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/segv_action.hpp"

#include <bit>
#include <csignal>
#include <cstring>

#include <sys/syscall.h>

#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/signal_bits.hpp"
#include "ptrace/remote/remote_calls.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee::cache {
namespace {

constexpr std::uint64_t kSigsetBytes = 8;

}  // namespace

Result<void> SegvAction::learn(Thread& thread, const ThreadMemory& memory) {
  if (current_) return {};
  const TraceeAddr scratch = memory.page() + CacheMemory::kScratchOffset;
  {
    BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
    BT_CHECKED(remote.call(SYS_rt_sigaction, {SIGSEGV, 0, scratch.value(), kSigsetBytes}));
  }
  std::memcpy(&action_, memory.scratch(CacheMemory::kScratchOffset), sizeof action_);
  current_ = true;
  return {};
}

Result<void> SegvAction::repair(Thread& thread, const ThreadMemory& memory,
                                std::uint64_t mask) const {
  const bool blocked = (mask & kSegvBit) != 0;
  const bool ignored = action_.handler == std::bit_cast<std::uint64_t>(SIG_IGN);
  if (!blocked && !ignored) return {};
  const TraceeAddr scratch = memory.page() + CacheMemory::kScratchOffset;
  std::memcpy(memory.scratch(CacheMemory::kScratchOffset), &action_, sizeof action_);
  {
    BT_TRY(RemoteCalls remote, RemoteCalls::begin(thread));
    BT_CHECKED(remote.call(SYS_rt_sigaction, {SIGSEGV, scratch.value(), 0, kSigsetBytes}));
  }
  return request::write_signal_mask(thread.tid(), mask);
}

}  // namespace backtrail::tracee::cache
