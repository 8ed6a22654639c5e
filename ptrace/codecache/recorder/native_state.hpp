// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The program's native state and its state in translated code, each from the other.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/translation/code_cache.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Returns true if a thread with these native registers can run translated code: 64-bit code that
/// neither uses gs nor traps after each instruction.
[[nodiscard]] bool can_run_translated(const arch::cpu::UserRegs& regs);

/// Returns the registers with which a thread goes on at a translation. Puts the native values of
/// those that translated code uses itself into the slots.
[[nodiscard]] arch::cpu::UserRegs translated_state(const arch::cpu::UserRegs& native,
                                                   ThreadMemory& memory, TraceeAddr translation);

/// Returns the program's state.
/// @param place where the thread has stopped; nullopt outside of translated code
/// @param stopped its registers there
[[nodiscard]] arch::cpu::translate::ProgramState program_state(
    const CodeCache& code, const ThreadMemory& memory, const std::optional<CodePlace>& place,
    const arch::cpu::UserRegs& stopped);

/// Returns true if a thread with this state is before an instruction of the program, none of which
/// has been executed, nor any code that records its values.
[[nodiscard]] bool is_before_insn(const std::optional<CodePlace>& place,
                                  const arch::cpu::translate::ProgramState& state);

/// Returns the exit that the log pointer `log` follows, with its target; nullopt if there is none.
/// The log is read once, because other threads of the program may write there.
[[nodiscard]] std::optional<arch::cpu::translate::Exit> last_exit(const CodeCache& code,
                                                                  const ThreadMemory& memory,
                                                                  TraceeAddr log);

/// A superblock that a thread has left on its way, and not by an exit.
struct UnfinishedBlock {
  decoder::BlockView logged;
  std::uint32_t number = 0;  ///< Its number in the ExitTable.
  std::size_t passed = 0;    ///< How many of its branches were taken.
  std::size_t values = 0;    ///< How many of its values were recorded.
  TraceeAddr pc{};           ///< Where the thread is.
};

/// Returns the superblock that a thread with this state is in; nullopt if it has left it by an
/// exit, or is elsewhere.
///
/// The CPU does not jump to a non-canonical address: the branch itself faults and pushes or pops
/// nothing (except that the word that a call wrote below the stack remains). If the branch that was
/// logged last leads there, takes it back, for the CPU to execute: `state` is before it then.
std::optional<UnfinishedBlock> unfinished_block(Process& process, const CodeCache& code,
                                                const ThreadMemory& memory,
                                                const std::optional<CodePlace>& place,
                                                arch::cpu::translate::ProgramState& state);

}  // namespace backtrail::tracee::cache
