// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The translator, a pure function: takes a program's bytes and returns code that logs its exits.
///
/// A superblock begins at one native address and follows fall-throughs, direct jumps and direct
/// calls. Return addresses on the stack stay native. Translated code changes no flag, writes
/// nothing below rsp, and can be interrupted anywhere: its pc map entries give the program's state.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <variant>

#include "arch/base/address.hpp"
#include "arch/x86/translate/decoded_insns.hpp"
#include "arch/x86/translate/superblock.hpp"

namespace backtrail::arch::x86::translate {

/// Access to the program's current code.
struct CodeSource {
  /// Copies bytes from an address; returns how many there are.
  std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)> read;
  /// Returns true if the instruction at this address must not be part of a superblock: a breakpoint
  /// is set there, or pages begin that must not be translated.
  std::function<bool(TraceeAddr)> stop_before;
  /// Returns the bytes from an address on that can be used without copying them: none, or those up
  /// to some place. They are valid until view() or read() is called again. May be empty.
  std::function<std::span<const std::uint8_t>(TraceeAddr)> view = {};
  /// Returns a range [begin, end) around an address, or an empty one, in which stop_before() and
  /// section_at() return false for all addresses. May be empty.
  std::function<std::pair<TraceeAddr, TraceeAddr>(TraceeAddr)> undisturbed = {};
  /// Called for an instruction, and an address that it uses. Returns true if the address's contents
  /// have changed what the other functions return. May be empty.
  std::function<bool(TraceeAddr insn, TraceeAddr address)> named = {};
  /// Returns true if an rseq critical section begins at this address. May be empty.
  std::function<bool(TraceeAddr)> section_at = {};
  /// Returns true if a superblock that falls through to this address must end there. May be empty.
  std::function<bool(TraceeAddr)> joined_at = {};
  /// Returns the likely target of the conditional or indirect branch at this address; nullopt if it
  /// mostly falls through or has no such target. May be empty.
  std::function<std::optional<TraceeAddr>(TraceeAddr)> likely_target = {};
  /// Cache of decoded instructions. May be null.
  DecodedInsns* decoded = nullptr;
};

/// When translated code makes a system call itself.
enum class CallCheck : std::uint8_t {
  kNever,
  kAlways,
  kMap,      ///< As mmap() that replaces no executable memory, and maps none that is writable too.
  kProtect,  ///< As mprotect() that neither makes memory executable nor concerns executable memory.
  kRange,    ///< If the range given by the first two arguments contains no executable memory.
  kAction,   ///< As rt_sigaction(), except for SIGSEGV and SIGTRAP.
  kThreadBase,  ///< As arch_prctl(), only for the base of fs.
  kSignalMask,  ///< As rt_sigprocmask(); keeps Slot::kSegvBlocked up to date.
  kLimit,       ///< As getrlimit(), except for RLIMIT_AS.
  kLimits,      ///< As prlimit64() that sets nothing (null third argument), except for RLIMIT_AS.
  kNullFourth,  ///< If the fourth argument is null, as of a ppoll() that changes no signal mask.
  kNullFifth,
  kNullSixth,
  kSignals,     ///< As kill() and calls that show blocked signals; unless Slot::kHolds is nonzero.
  kUsualFutex,  ///< As futex() for one of kUsualFutexes.
  /// As open() with flags that Policy::kOpenFlags and kOpenFlags2 permit, except for a path that
  /// ends in "us": /proc/PID/status shows affinities.
  kOpen,
  kOpenAt,  ///< As openat() with such flags, its third argument.
  kWrite,   ///< As write() to a descriptor for which Policy::kWatchedFiles is zero.
  kRseq,    ///< As rseq() without flags: it registers an area. The next miss is a stop.
  kTrace,   ///< As ptrace(), except PTRACE_TRACEME, PTRACE_ATTACH and PTRACE_SEIZE.
  kReturn,  ///< As rt_sigreturn() to 64-bit code without the trap flag, if Slot::kReturnStops is 0.
  kAnyNumber,  ///< As Policy::kNumbers says when it is made: the number is unknown until then.
};
/// Futex operations of usual locks and condition variables: FUTEX_WAIT, FUTEX_WAKE and
/// FUTEX_WAIT_BITSET, private to the process; the last one also with FUTEX_CLOCK_REALTIME.
inline constexpr std::array<std::uint32_t, 4> kUsualFutexes{0x80, 0x81, 0x89, 0x189};
/// The check of each system call, by its number.
using InlineSystemCalls = std::array<CallCheck, 512>;

/// How an indirect-branch entry compares the target with its own native address. LOOP does not jump
/// if they match, which most do, but takes several cycles on Intel's CPUs.
enum class IbEntryTest : std::uint8_t { kJrcxz, kLoop };
/// Returns the faster test on this CPU.
[[nodiscard]] IbEntryTest faster_ib_entry_test();

/// How an indirect branch computes its index in the look-up table: from the low 16 bits of the
/// target (MOVZX), or from those in Policy::kIndexMask (PEXT, which changes no flags).
enum class TableIndex : std::uint8_t { kLow16, kMasked };
/// Returns the better way on this CPU: kMasked if it has PEXT that is not microcoded.
[[nodiscard]] TableIndex faster_table_index();

/// A superblock for indirect branches has an indirect-branch entry kIbEntryOffset bytes after its
/// beginning. The entry expects the target in r10 and the program's rcx in its slot. The jump
/// before the entry takes other targets to the next entry with the same place in the table; its
/// rel32 can be changed while the program runs. The entry begins at a multiple of
/// kIbEntryAlignment, so its first two bytes can be replaced, too: kClosedIbEntry closes the entry.
inline constexpr std::uint32_t kIbEntryOffset = 5;
inline constexpr std::uint32_t kIbEntryAlignment = 16;
inline constexpr std::array<std::uint8_t, 2> kClosedIbEntry{0xeb, 0xf9};  // to the jump before it
/// Returns the entry's original first two bytes, by Superblock::after_entry.
[[nodiscard]] std::array<std::uint8_t, 2> ib_entry_beginning(std::uint32_t after_entry);

struct TranslateOptions {
  TraceeAddr address;        ///< Where the code will be.
  TraceeAddr table;          ///< The look-up table, which the policy follows; below kTableLimit.
  TraceeAddr miss;           ///< The dispatch stub; every exit leads there until it is linked.
  TraceeAddr returned = {};  ///< DispatchStub::returned_at.
  std::uint32_t first_exit = 0;  ///< Exits are numbered from here on.
  /// Where the indirect-branch entry leads if the target does not match. nullopt if the superblock
  /// has no entry; the program's rcx is then in its register at the beginning.
  std::optional<TraceeAddr> conflict = {};
  IbEntryTest ib_entry_test = faster_ib_entry_test();
  TableIndex table_index = faster_table_index();
  const InlineSystemCalls* inline_system_calls = nullptr;  ///< Null: none.
  /// Make a checked superblock, because the program may change this code at any time: it compares
  /// the few bytes it was made of each time it is entered, and ends after an instruction that may
  /// change them.
  bool checked = false;
  /// End superblocks at calls, and at jumps to the start of other superblocks, so that fewer
  /// superblocks contain the same code.
  bool saves_memory = false;
  /// Fill Superblock::native.
  bool keeps_code = false;
  /// Record values that make the past known: the registers that form the addresses of stores, and
  /// those of system calls. They go to the ring at kValuesOffset.
  bool records_values = false;
  /// Record the bytes that stores overwrite, besides.
  bool records_old_bytes = false;
  /// A superblock that is not needed any more: the new one gets its memory. May be null.
  Superblock* reused = nullptr;
  std::uint32_t max_instructions = 96;
  std::uint32_t max_exits = 24;
  std::uint32_t max_bytes = 2048;
};

/// Translates from `start` on. Returns the reason if the first instruction is untranslatable.
[[nodiscard]] std::variant<Superblock, UntranslatableReason> translate(
    const CodeSource& source, TraceeAddr start, const TranslateOptions& options);

/// The dispatch stub. It keeps the registers that it needs in their slots. Indirect-branch entries
/// and the look-up table lead to its beginning, exits to `direct_at`. While the server looks at
/// requests, the stub asks for a translation and goes there. Otherwise, or if the request is
/// refused or not answered soon, the stub stops by a trap of its own, which cannot be merged with
/// or mistaken for a signal that a process sends; the thread is then just after the INT3
/// (`stopped_at`), with its signal mask in Slot::kMask. If a filter forbids asking for the mask, it
/// raises SIGSEGV at `faults_at`.
struct DispatchStub {
  std::vector<std::uint8_t> code;
  std::vector<PcMapEntry> pc_map;
  std::uint32_t direct_at = 0;
  std::uint32_t saved_at = 0;    ///< Offset from which on the slots hold the program's registers.
  std::uint32_t stopped_at = 0;  ///< Offset just after the INT3.
  std::uint32_t faults_at = 0;   ///< Offset of the fault, if Slot::kStopsByFault is nonzero.
  /// Offset of a second routine, where rt_sigreturn continues with the target in r10: it goes to
  /// Slot::kLanding as to an indirect-branch entry.
  std::uint32_t returned_at = 0;

  /// Returns the pc map entry for an offset; its pc has no meaning.
  [[nodiscard]] const PcMapEntry& entry_at(std::uint32_t offset) const;
};
/// Number of looks at a request after which the server is assumed to be busy: some 100
/// microseconds. Between two looks the server translates one superblock at most.
inline constexpr std::uint32_t kPatience = 2000;
[[nodiscard]] DispatchStub make_dispatch_stub(TraceeAddr address,
                                              std::uint32_t patience = kPatience);

}  // namespace backtrail::arch::x86::translate
