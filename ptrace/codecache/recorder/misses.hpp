// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Misses: threads without a translation to go to, stopped or with a request.

#include <optional>
#include <variant>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/space/cache_space.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Address at which a thread continues after a miss, or why it must leave translated code.
struct MissAnswer {
  std::optional<TraceeAddr> next;
  std::optional<arch::cpu::translate::UntranslatableReason> why;
};

/// Address of a translation, or why there is none.
using FoundCode = std::variant<TraceeAddr, arch::cpu::translate::UntranslatableReason>;

/// Returns what `look` returns for the code at `pc`. If the memory is not known to be executable,
/// reads the mappings again and looks once more. The space's mappings must be current.
template <typename Look>
[[nodiscard]] FoundCode look_for_code(CacheSpace& space, TraceeAddr pc, Look look) {
  const FoundCode found = look();
  const auto* reason = std::get_if<arch::cpu::translate::UntranslatableReason>(&found);
  const bool is_unknown =
      reason != nullptr && *reason == arch::cpu::translate::UntranslatableReason::kMemory;
  return is_unknown && space.finds_new_code(pc) ? look() : found;
}

/// Translates what is missing at the log pointer `log`, and links the exit to it. The space's
/// mappings must be current. Both members are nullopt if the thread is in no miss.
[[nodiscard]] MissAnswer answer_miss(Process& process, CacheSpace& space,
                                     const ThreadMemory& memory, TraceeAddr log);

/// Returns the registers with which a thread that was stopped by the dispatch stub goes on at
/// `next`.
[[nodiscard]] arch::cpu::UserRegs registers_after_miss(const arch::cpu::UserRegs& stopped,
                                                       const ThreadMemory& memory, TraceeAddr log,
                                                       TraceeAddr next);

}  // namespace backtrail::tracee::cache
