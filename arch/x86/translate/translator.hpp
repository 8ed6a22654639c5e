#pragma once
/// @file
/// The translator: a program's bytes in, code that logs its exits out. A pure function.
///
/// A superblock begins at one native address and follows fall-throughs, direct jumps and direct
/// calls. Return addresses on the stack stay native. Translated code changes no flag, writes
/// nothing below rsp, and can be interrupted anywhere: its rows say what the program's state is.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <variant>

#include "arch/base/address.hpp"
#include "arch/x86/translate/decoded_insns.hpp"
#include "arch/x86/translate/superblock.hpp"

namespace backtrail::arch::x86::translate {

/// The program's code as it is now.
struct CodeSource {
  /// Copies bytes from an address on; returns how many there are.
  std::function<std::size_t(TraceeAddr, std::span<std::uint8_t>)> read;
  /// The instruction at this address must not be translated along (a breakpoint is there, or
  /// pages that are not to be translated begin).
  std::function<bool(TraceeAddr)> stop_before;
  /// Code uses this address; what is there may change what the other functions say. May be empty.
  std::function<void(TraceeAddr)> named = {};
  /// A restartable sequence begins at this address. May be empty.
  std::function<bool(TraceeAddr)> section_at = {};
  /// A superblock that falls through to this address ends there. May be empty.
  std::function<bool(TraceeAddr)> joined_at = {};
  /// Where the conditional or indirect branch at this address goes most of the time; nothing for
  /// one that mostly goes on, or anywhere. May be empty.
  std::function<std::optional<TraceeAddr>(TraceeAddr)> likely_target = {};
  /// From earlier superblocks. May be nullptr.
  DecodedInsns* decoded = nullptr;
};

/// When a system call is made by translated code.
enum class CallCheck : std::uint8_t {
  kNever,
  kAlways,
  kMap,         ///< As mmap() without executable memory, there and where it was mapped.
  kProtect,     ///< As mprotect(), likewise.
  kRange,       ///< Its first two arguments name a range; when no executable memory is there.
  kAction,      ///< As rt_sigaction(), but for SIGSEGV and SIGTRAP.
  kThreadBase,  ///< As arch_prctl(), for the base of fs alone.
  kSignalMask,  ///< As rt_sigprocmask(); Slot::kSegvBlocked is kept true.
  kLimit,       ///< As getrlimit(), but for RLIMIT_AS.
  kLimits,      ///< As prlimit64(), likewise, that sets nothing: its third argument is null.
  kNullFourth,  ///< As ppoll() that changes no signal mask, and so on.
  kNullFifth,
  kNullSixth,
  kSignals,     ///< As kill() and others that tell which signals are blocked; unless Slot::kHolds.
  kUsualFutex,  ///< As futex() for one of kUsualFutexes.
  kOpen,        ///< As open(): when the policy has nothing against its flags (kOpenFlags).
  kOpenAt,      ///< As openat(), likewise: they are its third argument.
  kWrite,       ///< As write(): when Policy::kWatchedFiles does not name its first argument.
  kTrace,       ///< As ptrace(), but for PTRACE_TRACEME, PTRACE_ATTACH and PTRACE_SEIZE.
  kReturn,     ///< As rt_sigreturn(), unless Slot::kReturnStops: to 64-bit code that is not traced.
  kAnyNumber,  ///< What Policy::kNumbers says of it: its number is not known before.
};
/// What locks and condition variables of libraries ask for: FUTEX_WAIT, FUTEX_WAKE and
/// FUTEX_WAIT_BITSET, private to the process, the last one also by FUTEX_CLOCK_REALTIME.
inline constexpr std::array<std::uint32_t, 4> kUsualFutexes{0x80, 0x81, 0x89, 0x189};
/// By number.
using InlineSystemCalls = std::array<CallCheck, 512>;

/// How a landing pad sees that a target is its own. LOOP does not jump then, which is what most
/// targets are, but Intel's CPUs take several cycles for it.
enum class PadTest : std::uint8_t { kJrcxz, kLoop };
/// On the CPU that this code runs on.
[[nodiscard]] PadTest faster_pad_test();

/// How indirect transfers find their entry in the table: by the low 16 bits of the target (MOVZX),
/// or by those of Policy::kIndexMask (PEXT, which changes no flags).
enum class TableIndex : std::uint8_t { kLow16, kMasked };
/// On the CPU that this code runs on: kMasked where it has PEXT, and not by microcode.
[[nodiscard]] TableIndex faster_table_index();

/// A superblock for indirect transfers has a landing pad in front, which is so many bytes behind
/// its beginning. It is entered with the target in r10 and the program's rcx in its slot. In front
/// of the pad is the jump to whoever has the table's entry otherwise, if the target is another; its
/// rel32 can be changed. From kPadAlignment on the pad's beginning can be changed, to kDeadPad.
inline constexpr std::uint32_t kPadOffset = 5;
inline constexpr std::uint32_t kPadAlignment = 16;
inline constexpr std::array<std::uint8_t, 2> kDeadPad{0xeb, 0xf9};  // jmp to the jump
/// What stood there before, by Superblock::body.
[[nodiscard]] std::array<std::uint8_t, 2> pad_beginning(std::uint32_t body);

struct TranslateOptions {
  TraceeAddr address;            ///< Where the code will be.
  TraceeAddr table;              ///< The look-up table and what is behind it; below kTableLimit.
  TraceeAddr miss;               ///< The miss routine; every exit leads there until it is linked.
  TraceeAddr returned = {};      ///< MissRoutine::returned_at.
  std::uint32_t first_exit = 0;  ///< Exits are numbered from here on.
  /// Where a landing pad goes on to if the target is another. Nothing: there is none, and the
  /// program's rcx is in its register.
  std::optional<TraceeAddr> conflict = {};
  PadTest pad_test = faster_pad_test();
  TableIndex table_index = faster_table_index();
  const InlineSystemCalls* inline_system_calls = nullptr;  ///< nullptr: none.
  /// The program may change this code at any time: the superblock compares the few bytes that it
  /// was made of each time it is entered, and ends behind an instruction that might change them.
  bool checked = false;
  /// Superblocks end with calls, and with jumps to where another one begins: the same code is in
  /// fewer of them.
  bool saves_memory = false;
  std::uint32_t max_instructions = 96;
  std::uint32_t max_exits = 24;
  std::uint32_t max_bytes = 2048;
};

/// Translates from `head` on, or says why the first instruction there cannot be translated.
[[nodiscard]] std::variant<Superblock, Special> translate(const CodeSource& source, TraceeAddr head,
                                                          const TranslateOptions& options);

/// The miss routine: keeps the registers it needs in their slots. Its beginning is for indirect
/// transfers, as landing pads are entered; exits lead to `direct_at`. While the tracer looks at
/// requests it asks for a translation and goes there. Otherwise, or refused, or not answered soon,
/// it stops by a trap of its own, which no signal that somebody sends is merged with or mistaken
/// for; the tracer finds the thread behind `stopped_at`, and its signal mask in Slot::kMask. Where
/// a filter forbids to ask for the mask it raises SIGSEGV at `faults_at`.
struct MissRoutine {
  std::vector<std::uint8_t> code;
  std::vector<PcRow> rows;
  std::uint32_t direct_at = 0;
  std::uint32_t saved_at = 0;    ///< From this offset on the slots hold the program's registers.
  std::uint32_t stopped_at = 0;  ///< Just behind the INT3.
  std::uint32_t faults_at = 0;   ///< Or there, with SIGSEGV, where Slot::kStopsByFault says so.
  /// From here on it is another routine: a thread that returns from a handler comes by, with the
  /// target in r10, and goes to Slot::kLanding as to a landing pad.
  std::uint32_t returned_at = 0;

  /// What is where at an offset; its pc means nothing.
  [[nodiscard]] const PcRow& row_at(std::uint32_t offset) const;
};
[[nodiscard]] MissRoutine make_miss_routine(TraceeAddr address);

}  // namespace backtrail::arch::x86::translate
