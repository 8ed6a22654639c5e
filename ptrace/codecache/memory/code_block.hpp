// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What is known of each superblock and of each exit; as small as possible, because there are
/// hundreds of thousands of them.

#include <cstdint>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"

namespace backtrail::tracee::cache {

struct CodeBlock {
  /// kMadeHere: made of code that is in no file. kIbEntry: has an indirect-branch entry. kUnloaded:
  /// unloaded with its module, which matched its file until then. kCalls: reaches a system call.
  /// kPlain: made short, because it was not known to run often.
  enum Flag : std::uint8_t {
    kMadeHere = 1,
    kDropped = 2,
    kIbEntry = 4,
    kUnloaded = 8,
    kCalls = 16,
    kPlain = 32
  };

  TraceeAddr start;
  std::uint32_t offset = 0;     ///< Offset in the code.
  std::uint32_t logged = 0;     ///< Its number in the ExitTable.
  std::uint32_t first_row = 0;  ///< Offset of its first pc map entry among the packed bytes of all.
  std::uint32_t row_bytes = 0;
  std::uint16_t range_bytes = 0;  ///< Size of the packed ranges, which follow the pc map entries.
  std::uint16_t size = 0;         ///< Size of the code.
  std::uint8_t flags = 0;
  std::uint8_t after_entry = 0;  ///< Offset of the code after the indirect-branch entry.
  /// Offset of the exits in its middle (Superblock::side_exits_at).
  std::uint16_t side_exits_at = 0;

  void set(Flag flag) { flags = static_cast<std::uint8_t>(flags | flag); }
  void reset(Flag flag) { flags = static_cast<std::uint8_t>(flags & ~flag); }
  [[nodiscard]] bool has_ib_entry() const { return (flags & kIbEntry) != 0; }
  [[nodiscard]] bool is_dropped() const { return (flags & kDropped) != 0; }
  [[nodiscard]] bool is_unloaded() const { return (flags & kUnloaded) != 0; }
  [[nodiscard]] bool is_made_here() const { return (flags & kMadeHere) != 0; }
  [[nodiscard]] bool is_plain() const { return (flags & kPlain) != 0; }
  [[nodiscard]] bool comes_to_call() const { return (flags & kCalls) != 0; }
};

/// The facts of an exit that ExitTable does not store.
class ExitPlace {
 public:
  /// `link`: code offset of the rel32 that leads to the target; 0 = cannot be linked.
  static ExitPlace of(std::uint64_t link, const arch::cpu::translate::Exit& exit);

  [[nodiscard]] std::uint32_t link() const;
  [[nodiscard]] arch::cpu::translate::ExitKind kind(decoder::LoggedExitKind logged) const;
  [[nodiscard]] arch::cpu::translate::UntranslatableReason reason() const;
  /// Returns true if of() can have made this value.
  [[nodiscard]] bool is_sound() const;

 private:
  std::uint32_t bits_ = 0;
};

[[nodiscard]] decoder::LoggedExitKind logged_kind(arch::cpu::translate::ExitKind kind);

}  // namespace backtrail::tracee::cache
