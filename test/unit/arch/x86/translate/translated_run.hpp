// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs code in this process from one state to another, natively or translated.

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <vector>

#include "arch/x86/raw_registers.hpp"
#include "arch/x86/translate/layout.hpp"
#include "arch/x86/translate/translator.hpp"
#include "arch/x86/values/general_registers.hpp"

namespace backtrail::arch::x86::translate {

/// Everything that instructions can read and change except memory. In encoding order.
struct MachineState {
  std::array<std::uint64_t, 16> general{};
  std::array<std::array<std::uint64_t, 2>, 16> vectors{};
  std::uint64_t flags = 0;
  bool operator==(const MachineState&) const = default;
};

/// MachineState::general by the kernel's names.
using values::kGeneralRegisters;
/// Returns the general registers in a tracer's form.
[[nodiscard]] UserRegs user_regs(const MachineState& state);

/// A thread's page as in layout.hpp, with the program's state after the slots.
struct alignas(16) ThreadPage {
  std::array<std::uint64_t, 64> slots{};
  MachineState state;
  std::uint64_t host_stack = 0;
  std::uint64_t target = 0;
  std::array<std::uint64_t, 13> unused{};
  std::array<std::uint64_t, kFrameBytes / sizeof(std::uint64_t)>
      frame{};  ///< From Slot::kFrame on.
};

/// Goes to the page's target with the page's state; gs must point to the page. Returns with the new
/// state when control reaches bt_test_leave.
extern "C" void bt_test_enter();
extern "C" void bt_test_leave();

/// A jump to any address that changes no flags and registers.
inline constexpr std::size_t kFarJumpBytes = 14;
void write_far_jump(std::span<std::uint8_t> out, std::uint64_t target);

/// Pages of this process, below 2 GiB if `low`. Unmapped by the destructor.
class Pages {
 public:
  Pages(std::size_t bytes, bool low);
  ~Pages();
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  [[nodiscard]] std::span<std::uint8_t> bytes() const { return bytes_; }
  [[nodiscard]] TraceeAddr address() const;

 private:
  std::span<std::uint8_t> bytes_;
};

/// Runs translations of code in this process from `begin` to `end`.
class TranslatedRun {
 public:
  TranslatedRun();
  /// Options as a recorder sets them, except for the size of superblocks.
  struct Shape {
    bool checked = false;
    std::uint32_t max_instructions = 96;
    const InlineSystemCalls* system_calls = nullptr;
    /// Indirect branches enter superblocks through their indirect-branch entries.
    bool lands = false;
    IbEntryTest ib_entry_test = IbEntryTest::kLoop;
    TableIndex table_index = TableIndex::kLow16;
    bool saves_memory = false;
    bool records_values = false;
    bool records_old_bytes = false;
  };
  /// Returns the state at `end`; nullopt if some of the code was untranslatable. `code` is the
  /// translator's view of the program.
  std::optional<MachineState> run(const CodeSource& code, TraceeAddr begin, TraceeAddr end,
                                  const MachineState& state, Shape shape);
  /// Runs the code natively. It must end with a jump to bt_test_leave.
  static MachineState run_natively(TraceeAddr begin, const MachineState& state);
  [[nodiscard]] std::size_t superblocks() const { return superblocks_; }
  /// Targets of the branches that left superblocks in the last run.
  [[nodiscard]] const std::map<TraceeAddr, TraceeAddr>& taken() const { return taken_; }
  /// The tables by which system calls are checked.
  [[nodiscard]] std::span<std::uint8_t> policy() const {
    return table_.bytes().subspan(kEntryTableBytes);
  }
  [[nodiscard]] static std::uint64_t& slot(Slot which);
  /// Where a thread goes that returns from a handler.
  [[nodiscard]] Branch returned_range() const;

  /// The superblock that runs or ran last, for callers that examine each of its instructions.
  [[nodiscard]] const Superblock& current() const { return current_; }
  [[nodiscard]] Branch code_range() const {
    return {code_.address(), code_.address() + code_.bytes().size()};
  }
  [[nodiscard]] TraceeAddr log_begin() const {
    return TraceeAddr{std::bit_cast<std::uintptr_t>(log_.data())};
  }
  /// The values recorded since the present superblock was entered.
  [[nodiscard]] std::span<const std::uint64_t> values() const;
  [[nodiscard]] const Exit& exit_logged() const { return exits_.at(log_[0]); }
  /// Target of a transfer that reaches an indirect-branch entry of another place.
  [[nodiscard]] std::optional<TraceeAddr> wrong_target() const { return wrong_target_; }

 private:
  /// Enters an indirect-branch entry with the target of another one; nothing may change.
  void expect_conflict(TraceeAddr entry, TraceeAddr start);
  /// Enters a checked superblock whose code has changed; nothing may change.
  void expect_stale(TraceeAddr entry);
  static void expect_left(UntranslatableReason why, const Shape& shape);
  /// `lands`: its indirect-branch entry is used.
  std::optional<TraceeAddr> translate_at(const CodeSource& code, TraceeAddr start, Shape shape,
                                         bool lands);

  Pages code_;
  Pages table_;
  std::size_t used_ = 0;
  std::size_t superblocks_ = 0;
  Superblock current_;
  std::optional<TraceeAddr> wrong_target_;
  std::vector<Exit> exits_;
  std::vector<std::uint32_t> log_;
  std::map<TraceeAddr, TraceeAddr> taken_;
};

}  // namespace backtrail::arch::x86::translate
