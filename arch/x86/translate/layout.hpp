#pragma once
/// @file
/// What translated code takes for granted: two registers of its own, one page a thread, one table.
///
/// r11 holds the log pointer and r10 is scratch while translated code runs; the program's values
/// of both live in the thread's page, which the gs segment base points to.

#include <cstddef>
#include <cstdint>

namespace backtrail::arch::x86::translate {

/// Offsets from the gs base, eight bytes each unless said otherwise.
enum class Slot : std::uint32_t {
  kLog = 0,      ///< The log pointer, while r11 holds something else.
  kR10 = 8,      ///< The program's r10.
  kR11 = 16,     ///< The program's r11.
  kRcx = 24,     ///< The program's rcx, where translated code needs the register.
  kTarget = 32,  ///< Where an indirect transfer goes that has no translation to go to.
  kRax = 40,     ///< The program's registers inside the miss routine.
  kRdx = 48,
  kRsi = 56,
  kRdi = 64,
  kProcessId = 72,      ///< Four bytes, as the program itself sees the id.
  kThreadId = 76,       ///< Four bytes.
  kArgument = 80,       ///< What is made of a system call's arguments.
  kSegvBlocked = 88,    ///< Not zero while SIGSEGV is blocked.
  kServed = 96,         ///< Not zero while the tracer looks at requests.
  kRequest = 104,       ///< A Request.
  kAnswer = 112,        ///< Where the thread goes on.
  kRseqArea = 120,      ///< The thread's struct rseq, while it is served; 0: it has none.
  kStopsByFault = 128,  ///< Not zero: a filter forbids to ask for the mask.
  kNumber = 136,        ///< Of a system call that is known only when it is made.
  kMaskAt = 144,        ///< Address of the next slot.
  kMask = 152,          ///< The thread's signal mask, where the miss routine traps.
  kHolds = 160,         ///< Not zero: signals are blocked that the program does not block.
  kReturnStops = 168,   ///< Not zero: the tracer wants to see handlers return.
  kFrameAt = 176,       ///< Address of kFrame.
  kLanding = 184,       ///< Where a thread goes on that returns from a handler.
  kReturnR10 = 192,     ///< The program's registers after that return.
  kReturnR11 = 200,
  kReturnSegv = 208,  ///< The value of kSegvBlocked after it.
  kFrame = 1024,      ///< kFrameBytes: a copy of a signal's frame, for the kernel alone.
};
inline constexpr std::size_t kThreadPageBytes = 4096;

/// Offsets in struct ucontext, which rsp points to at rt_sigreturn (asm/ucontext.h,
/// asm/sigcontext.h).
enum class FrameField : std::uint32_t {
  kR10 = 56,
  kR11 = 64,
  kRcx = 152,
  kRip = 168,
  kFlags = 176,
  kCs = 184,
  kMask = 296,  ///< The last thing that the kernel reads of it, other than what it points to.
};
inline constexpr std::size_t kFrameBytes = 304;
/// A field of the copy.
[[nodiscard]] constexpr Slot frame_slot(FrameField field) {
  return static_cast<Slot>(static_cast<std::uint32_t>(Slot::kFrame) +
                           static_cast<std::uint32_t>(field));
}

/// A thread without a translation to go to asks for one, without stopping.
enum class Request : std::uint64_t {
  kNone = 0,
  kAsked = 1,     ///< By the thread, which waits a little.
  kAnswered = 2,  ///< By the tracer, with Slot::kAnswer.
  kTaken = 3,     ///< The tracer is at it; the thread waits longer.
  kRefused = 4,   ///< The thread is to stop.
};

/// Landing pads by the low 16 bits of the native address, eight bytes an entry; by up to 20 bits
/// where a mask tells how many (TableIndex::kMasked).
inline constexpr std::size_t kTableEntries = 65536;
inline constexpr std::size_t kMostTableEntries = 1UL << 20U;
/// The room for them.
inline constexpr std::size_t kEntryTableBytes = kMostTableEntries * 8;

/// Behind the table: what tells which system calls concern executable memory. Bytes that are not
/// zero, or ranges. Offsets of the parts.
enum class Policy : std::uint32_t {
  kProtections = 0,      ///< By the low byte of a protection.
  kMapFlags = 256,       ///< By the low byte of mmap()'s flags.
  kSegvBit = 512,        ///< By the second byte of a signal set.
  kIndexMask = 768,      ///< 32 bits: those of a native address that tell its entry in the table.
  kNumbers = 784,        ///< By a system call's number below 512; zero: the call is made.
  kNumberHigh = 1296,    ///< By such a number's second byte; zero: it may be below 512.
  kOpenFlags = 1552,     ///< By the low byte of open()'s flags; zero: it may be made.
  kWatchedFiles = 1808,  ///< By the low byte of a descriptor; zero: writes to it are made.
  kOpenFlags2 = 2064,    ///< By their second byte; zero, as the other: the call is made.
  kTrapFlag = 2320,      ///< By the second byte of flags.
  kRanges = 2576,  ///< PolicyRange after PolicyRange; one that begins at 0 is behind the last.
};
/// Executable memory. The negated addresses are what translated code adds arguments to.
struct PolicyRange {
  std::uint64_t negated_begin = 0;
  std::uint64_t negated_end = 0;
};
inline constexpr std::size_t kPolicyBytes = 8192;
inline constexpr std::size_t kPolicyRanges =
    (kPolicyBytes - static_cast<std::size_t>(Policy::kRanges)) / sizeof(PolicyRange);

/// Translated code and table must lie below this (32-bit displacements, sign-extended).
inline constexpr std::uint64_t kTableLimit = 0x7fff'ffff;

/// A log entry: the number of the exit by which a superblock was left.
inline constexpr std::size_t kLogEntryBytes = 4;

/// Linking stores four bytes that must lie within one cache line.
inline constexpr std::size_t kCacheLineBytes = 64;

}  // namespace backtrail::arch::x86::translate
