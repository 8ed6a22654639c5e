// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The memory that translated code and its look-up table live in, as the code cache needs it.

#include <cstdint>
#include <span>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/entry_table.hpp"
#include "ptrace/codecache/memory/left_code.hpp"

namespace backtrail::tracee::cache {

/// The part of the look-up table that shares a mapping with the code.
inline constexpr std::uint64_t kFirstTableBytes = 8 * arch::cpu::translate::kTableEntries;
/// The first table and the policy that tells which system calls matter.
inline constexpr std::uint64_t kTableBytes =
    (kFirstTableBytes + arch::cpu::translate::kPolicyBytes + 4095) / 4096 * 4096;
/// The rest of a table that grows is elsewhere. The program sees all of it in a row.
inline constexpr std::uint64_t kMoreTableBytes =
    arch::cpu::translate::kEntryTableBytes - kFirstTableBytes;
inline constexpr std::uint64_t kTableSpan = kTableBytes + kMoreTableBytes;
/// Table and code. A browser's start has 60 MB of it.
inline constexpr std::uint64_t kSharedBytes = 128ULL << 20;
inline constexpr std::uint64_t kCodeBytes = kSharedBytes - kTableBytes;
/// The end of it is for calls that threads make for us; translations use what is before.
inline constexpr std::uint64_t kBatchBytes = 16ULL << 10;
inline constexpr std::uint64_t kTranslationBytes = kCodeBytes - kBatchBytes;

/// Code that the program may execute and the server may write at the same time.
class CodeMemory {
 public:
  CodeMemory() = default;
  virtual ~CodeMemory() = default;
  CodeMemory(const CodeMemory&) = delete;
  CodeMemory& operator=(const CodeMemory&) = delete;

  /// Where the program sees the code, and the table with the policy after it.
  [[nodiscard]] virtual TraceeAddr code() const = 0;
  [[nodiscard]] virtual TraceeAddr table() const = 0;
  /// The code as the server sees it: kCodeBytes or, in tests, fewer. It stays where it is.
  [[nodiscard]] virtual std::span<std::uint8_t> host_code() const = 0;
  /// The table as the server sees it. It stays where it is.
  [[nodiscard]] virtual EntryTable& entries() = 0;

  /// Makes every entry of the table lead to `target`, before the program runs any code.
  virtual void fill_table(TraceeAddr target) = 0;
  /// Puts saved code at the beginning, before the program runs any; after fill_table(). Memory that
  /// was left with it (leave_code()) has most of it already.
  virtual void fill_code(std::span<const std::uint8_t> code) = 0;
  /// Tells, at the end, which code the memory is left with.
  virtual void leave_code(LeftCode left) = 0;
  /// Tells that the code before this offset is there to stay, so that it may get big pages, which
  /// processors keep track of many fewer of, where the kernel has them; and that more code follows.
  virtual void settle_code(std::uint64_t end) = 0;
  /// Tells that the program runs for longer: the code that there is may get a big page before it
  /// fills one.
  virtual void settle_first() = 0;

  /// Whether an address is in the code.
  [[nodiscard]] bool has_code(TraceeAddr address) const {
    return address >= code() && address < code() + kCodeBytes;
  }
};

}  // namespace backtrail::tracee::cache
