#pragma once
/// @file
/// What system calls mean for translated code.

#include <cstdint>
#include <optional>
#include <span>

#include "arch/base/address.hpp"
#include "arch/x86/raw_registers.hpp"
#include "arch/x86/translate/layout.hpp"
#include "arch/x86/translate/translator.hpp"
#include "ptrace/codecache/program/executable_map.hpp"

namespace backtrail::tracee::cache {

/// Calls that are made from translated code, unseen: they change neither executable memory nor
/// threads, processes, signal masks and handlers that matter to us, and end behind themselves.
[[nodiscard]] const arch::x86::translate::InlineSystemCalls& inline_system_calls();

/// Fills in what such calls look at. The bytes are those of translate::Policy.
void write_policy(const ExecutableMap& map, std::span<std::uint8_t> policy);
/// Fills in which calls are made whose number translated code sees only then.
/// @param watches_writes  No writes to files are made.
void write_numbers(const arch::x86::translate::InlineSystemCalls& calls, bool watches_writes,
                   std::span<std::uint8_t> policy);

enum class SyscallEffect : unsigned char {
  kNone,
  kMappings,      ///< Executable memory may be another afterwards.
  kSandbox,       ///< The program restricts its system calls, also those that we would make.
  kFilter,        ///< Likewise, by a filter, to which its third argument leads.
  kSegvAction,    ///< Sets the action of SIGSEGV; the new one is at the second argument.
  kAddressLimit,  ///< Bounds how much may be mapped, or asks for the bound.
  kLocksAll,      ///< Locks all memory that is mapped.
  kOpens,         ///< May open a file for writing, or make it empty.
  kTruncates,     ///< Changes the length of a file that may lie beneath code of any process.
  kWrites,        ///< Writes to an open file.
  kTraces,        ///< Asks for a process to be traced by another one than us.
  kWritesMemory,  ///< Writes another process's memory, or the caller's.
};

/// What a call of effect kMappings does, at most.
struct MappingChange {
  TraceeAddr begin;  ///< Mapped anew, or not any more, or otherwise: [begin, end).
  TraceeAddr end;
  bool new_code = false;  ///< There may be executable memory that was not there before.
};
[[nodiscard]] MappingChange mapping_change_of(const arch::x86::UserRegs& regs);

/// What a call of effect kAddressLimit does.
struct LimitCall {
  std::int32_t process = 0;  ///< Whose limit it is, as the program names it; 0: its own.
  TraceeAddr new_at;         ///< Null: it sets nothing, or asks for nothing.
  arch::x86::UserReg new_in{};
  TraceeAddr old_at;
};
[[nodiscard]] std::optional<LimitCall> limit_call_of(const arch::x86::UserRegs& regs);

/// Whether a core of the process may be kept from the call on; nullopt if the call does not say.
[[nodiscard]] std::optional<bool> keeps_core(const arch::x86::UserRegs& regs);

/// Of the call that the thread is about to make.
[[nodiscard]] SyscallEffect effect_of(const arch::x86::UserRegs& regs);

/// What a call does with memory that the program may write and we do not let it.
enum class WriteEffect : unsigned char {
  kArguments,  ///< The kernel writes where its arguments point to, if anywhere.
  kBuffers,    ///< Where what they point to says.
  kClone,      ///< Another thread or process gets the memory, or a copy.
  kAnyTime,    ///< Others write it from now on, or the program may not any more.
};
[[nodiscard]] WriteEffect write_effect_of(const arch::x86::UserRegs& regs);

}  // namespace backtrail::tracee::cache
