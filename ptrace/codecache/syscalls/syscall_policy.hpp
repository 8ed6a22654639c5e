// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Defines what each system call means for translated code.

#include <cstdint>
#include <optional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/cpu/translator.hpp"
#include "arch/isa.hpp"
#include "ptrace/codecache/program/executable_map.hpp"

namespace backtrail::tracee::cache {

/// Returns the calls that translated code makes itself, unseen by the server. They change neither
/// executable memory nor threads, processes, or signal masks and actions that matter to the
/// recorder, and they return to the instruction after them.
[[nodiscard]] const arch::cpu::translate::InlineSystemCalls& inline_system_calls();

/// Writes the ranges that checks of inline calls read: executable memory, and that of the recorder
/// (`ours`). `policy` holds the bytes of translate::Policy.
void write_policy(const ExecutableMap& map, std::span<const ExecutableMap::Part> ours,
                  std::span<std::uint8_t> policy);
/// Writes which files translated code opens itself, by open()'s flags.
void write_opens(std::span<std::uint8_t> policy);
/// Writes which calls are made if translated code learns the number only at run time.
/// @param watches_writes Exclude calls that write to files.
void write_numbers(const arch::cpu::translate::InlineSystemCalls& calls, bool watches_writes,
                   std::span<std::uint8_t> policy);

enum class SyscallEffect : unsigned char {
  kNone,
  kMappings,      ///< Executable memory may have changed afterwards.
  kSandbox,       ///< Restricts the process's system calls, and so also the recorder's.
  kFilter,        ///< Installs a filter, to which the third argument points.
  kSegvAction,    ///< Sets the action of SIGSEGV; the second argument points to the new one.
  kAddressLimit,  ///< Sets or returns the limit on address space.
  kLocksAll,      ///< Locks all memory that is mapped.
  kOpens,         ///< May open a file for writing or truncate it.
  kTruncates,     ///< Changes the length of a file that may be mapped as code in any process.
  kWrites,        ///< Writes to an open file.
  kTraces,        ///< Requests that a process be traced by another process than the server.
  kWritesMemory,  ///< Writes the memory of another process or of the caller.
  kWritesLater,   ///< Lets the kernel or others write memory at any time.
};

/// The most that a call of effect kMappings can do.
struct MappingChange {
  TraceeAddr begin;  ///< Mappings in [begin, end) may be new, gone, or different.
  TraceeAddr end;
  bool new_code = false;  ///< There may be executable memory that was not there before.
  /// Memory of files there that cannot be written stays what it is.
  bool keeps_contents = false;
  bool lets_write = false;           ///< No mapping is another, but they can be written afterwards.
  bool leaves_out_children = false;  ///< A forked child may not have these mappings.
  /// All of this goes for [other_begin, other_end), too, if that is not empty.
  TraceeAddr other_begin = {};
  TraceeAddr other_end = {};
};
[[nodiscard]] MappingChange mapping_change_of(const arch::cpu::UserRegs& regs);
/// Returns the most that any call can do.
[[nodiscard]] MappingChange any_mapping_change();
/// Returns true if code in 64-bit mode begins with a system call that is not a plain SYSCALL
/// instruction: INT 0x80, whose numbers mean other calls, for example.
[[nodiscard]] bool is_call_of_other_form(arch::Isa isa, TraceeAddr pc,
                                         std::span<const std::uint8_t> code);

/// A call of effect kAddressLimit.
struct LimitCall {
  std::int32_t process = 0;  ///< Process whose limit it is, by the program's id for it; 0: the
                             ///< caller.
  TraceeAddr new_at;         ///< Address of the new limit; null if the call sets none.
  std::size_t new_in = 0;    ///< Index of the argument that holds new_at.
  TraceeAddr old_at;
};
[[nodiscard]] std::optional<LimitCall> limit_call_of(const arch::cpu::UserRegs& regs);

/// Returns whether a core of the process may be written after this call; nullopt if the call does
/// not change that.
[[nodiscard]] std::optional<bool> keeps_core(const arch::cpu::UserRegs& regs);

/// Returns the effect of the call that the thread is about to make.
[[nodiscard]] SyscallEffect effect_of(const arch::cpu::UserRegs& regs);

/// How a call accesses memory that the program may write but the recorder has write-protected.
enum class WriteEffect : unsigned char {
  kArguments,  ///< The kernel writes only where arguments point.
  kBuffers,    ///< The kernel writes where structures that arguments point to say.
  kClone,      ///< Another thread or process gets the memory, or a copy.
  kAnyTime,    ///< Others may write it from now on, or it may not become writable again.
};
[[nodiscard]] WriteEffect write_effect_of(const arch::cpu::UserRegs& regs);

}  // namespace backtrail::tracee::cache
