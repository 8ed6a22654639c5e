// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Conventions of translated code: two reserved registers, a page per thread, and one look-up
/// table.
///
/// While translated code runs, r11 holds the log pointer and r10 is scratch. The program's values
/// of both are in the thread's page, to which the gs base points.

#include <cstddef>
#include <cstdint>

namespace backtrail::arch::x86::translate {

/// Words of the thread page, as offsets from the gs base; eight bytes each unless stated otherwise.
enum class Slot : std::uint32_t {
  kLog = 0,      ///< The log pointer, while r11 holds something else.
  kR10 = 8,      ///< The program's r10.
  kR11 = 16,     ///< The program's r11.
  kRcx = 24,     ///< The program's rcx, while translated code uses the register.
  kTarget = 32,  ///< Target of an indirect branch without a translation.
  kRax = 40,     ///< The program's registers while in the dispatch stub.
  kRdx = 48,
  kRsi = 56,
  kRdi = 64,
  kProcessId = 72,      ///< Four bytes, as the program itself sees the id.
  kThreadId = 76,       ///< Four bytes.
  kArgument = 80,       ///< Scratch for the check of a system call's arguments.
  kSegvBlocked = 88,    ///< Nonzero while SIGSEGV is blocked.
  kServed = 96,         ///< Nonzero while the server polls for requests.
  kRequest = 104,       ///< A Request.
  kAnswer = 112,        ///< Address at which the thread continues.
  kRseqArea = 120,      ///< Address of the thread's struct rseq while the thread is served; 0 if it
                        ///< has none.
  kStopsByFault = 128,  ///< Nonzero if a filter forbids the call that reads the signal mask.
  kNumber = 136,        ///< Number of a system call, if known only when the call is made.
  kMaskAt = 144,        ///< Address of kMask.
  kMask = 152,          ///< The thread's signal mask when the dispatch stub traps.
  kHolds = 160,         ///< Nonzero while signals are blocked that the program does not block.
  kReturnStops = 168,   ///< Nonzero if a return from a signal handler must stop.
  kFrameAt = 176,       ///< Address of kFrame.
  kLanding = 184,       ///< Address in translated code that a signal handler returns to.
  kReturnR10 = 192,     ///< The program's r10 after that return.
  kReturnR11 = 200,     ///< The program's r11 after that return.
  kReturnSegv = 208,    ///< Value of kSegvBlocked after that return.
  kValues = 216,        ///< Index of the next recorded value in the ring; only two bytes change.
  kFrame = 1024,        ///< Copy of a signal frame, kFrameBytes long, for the kernel to read.
};
inline constexpr std::size_t kThreadPageBytes = 4096;

/// The ring of recorded values, as an offset from the gs base; the log lies in between. Indices
/// have 16 bits, so that the ring begins again without a comparison, which would change flags.
inline constexpr std::uint32_t kValuesOffset = kThreadPageBytes + (1U << 20U) + 4096;
inline constexpr std::size_t kRingValues = 65536;
inline constexpr std::size_t kValueBytes = 8;
/// Values that are stored before they are counted may lie after the end of the ring, where its
/// first page is mapped once more.
inline constexpr std::size_t kRepeatedBytes = 4096;

/// Offsets in struct ucontext, which rsp points to at rt_sigreturn (asm/ucontext.h,
/// asm/sigcontext.h).
enum class FrameField : std::uint32_t {
  kR10 = 56,
  kR11 = 64,
  kRcx = 152,
  kRip = 168,
  kFlags = 176,
  kCs = 184,
  kMask = 296,  ///< The signal mask, the last field that the kernel reads from the frame itself.
};
inline constexpr std::size_t kFrameBytes = 304;
/// Returns the slot of a field in the copied frame.
[[nodiscard]] constexpr Slot frame_slot(FrameField field) {
  return static_cast<Slot>(static_cast<std::uint32_t>(Slot::kFrame) +
                           static_cast<std::uint32_t>(field));
}

/// State of a thread's request for a translation, which the thread makes without stopping.
enum class Request : std::uint64_t {
  kNone = 0,
  kAsked = 1,     ///< Set by the thread, which waits briefly.
  kAnswered = 2,  ///< Set by the server; the answer is in Slot::kAnswer.
  kTaken = 3,     ///< Set by the server, which is working on it; the thread waits longer.
  kRefused = 4,   ///< The thread must stop.
};

/// Size of the look-up table of indirect-branch entries, eight bytes each: indexed by the low 16
/// bits of the native address, or by up to 20 bits if a mask tells how many (TableIndex::kMasked).
inline constexpr std::size_t kTableEntries = 65536;
inline constexpr std::size_t kMostTableEntries = 1UL << 20U;
/// Address space reserved for the table.
inline constexpr std::size_t kEntryTableBytes = kMostTableEntries * 8;

/// Offsets of the parts of the policy, which follows the look-up table: the tables and ranges by
/// which translated code decides whether a system call concerns executable memory. Nonzero bytes
/// mean that it does, unless stated otherwise.
enum class Policy : std::uint32_t {
  kProtections = 0,      ///< By the low byte of a protection.
  kMapFlags = 256,       ///< By the low byte of mmap()'s flags.
  kSegvBit = 512,        ///< By the second byte of a signal set.
  kIndexMask = 768,      ///< 32 bits: the mask of address bits that index the table.
  kNumbers = 784,        ///< By a system call's number below 512; zero: the call is made.
  kNumberHigh = 1296,    ///< By the number's second byte; zero: it may be below 512.
  kOpenFlags = 1552,     ///< By the low byte of open()'s flags.
  kWatchedFiles = 1808,  ///< By the low byte of a descriptor that is written to.
  kOpenFlags2 = 2064,    ///< By the second byte of open()'s flags.
  kTrapFlag = 2320,      ///< By the second byte of RFLAGS: nonzero if the trap flag is set.
  kRanges = 2576,        ///< Array of PolicyRange; one with negated_begin 0 ends it.
};
/// A range of executable memory. Its addresses are negated: translated code compares an argument
/// with one by adding them.
struct PolicyRange {
  std::uint64_t negated_begin = 0;
  std::uint64_t negated_end = 0;
};
inline constexpr std::size_t kPolicyBytes = 8192;
inline constexpr std::size_t kPolicyRanges =
    (kPolicyBytes - static_cast<std::size_t>(Policy::kRanges)) / sizeof(PolicyRange);

/// Upper limit of the look-up table's address (32-bit displacements are sign-extended).
inline constexpr std::uint64_t kTableLimit = 0x7fff'ffff;

/// A log entry is the id of the exit by which a superblock was left.
inline constexpr std::size_t kLogEntryBytes = 4;

/// Linking stores four bytes, which must lie within one cache line.
inline constexpr std::size_t kCacheLineBytes = 64;

}  // namespace backtrail::arch::x86::translate
