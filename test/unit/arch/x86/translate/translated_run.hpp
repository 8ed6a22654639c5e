#pragma once
/// @file
/// Runs code in this process from a state to a state: as it is, or translated.

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

namespace backtrail::arch::x86::translate {

/// What instructions can see and change, memory aside. In the order of encodings.
struct MachineState {
  std::array<std::uint64_t, 16> general{};
  std::array<std::array<std::uint64_t, 2>, 16> vectors{};
  std::uint64_t flags = 0;
  bool operator==(const MachineState&) const = default;
};

/// MachineState::general by the kernel's names.
inline constexpr std::array<UserReg, 16> kGeneral{
    UserReg::kRax, UserReg::kRcx, UserReg::kRdx, UserReg::kRbx, UserReg::kRsp, UserReg::kRbp,
    UserReg::kRsi, UserReg::kRdi, UserReg::kR8,  UserReg::kR9,  UserReg::kR10, UserReg::kR11,
    UserReg::kR12, UserReg::kR13, UserReg::kR14, UserReg::kR15};
/// Those alone, as a tracer has them.
[[nodiscard]] UserRegs user_regs(const MachineState& state);

/// One thread's page, as layout.hpp has it, with the state of the program behind the slots.
struct alignas(16) ThreadPage {
  std::array<std::uint64_t, 64> slots{};
  MachineState state;
  std::uint64_t host_stack = 0;
  std::uint64_t target = 0;
};

/// Goes to the page's target with the page's state; gs points to the page. Comes back when control
/// reaches bt_test_leave, with the state as it is then.
extern "C" void bt_test_enter();
extern "C" void bt_test_leave();

/// A jump to anywhere, flags and registers untouched.
inline constexpr std::size_t kFarJumpBytes = 14;
void write_far_jump(std::span<std::uint8_t> out, std::uint64_t target);

/// Pages of this process, below 2 GiB or wherever; given back at the end.
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

/// Executes code that lies in this process from `begin` to `end`, translated.
class TranslatedRun {
 public:
  TranslatedRun();
  /// Options as a recorder would give them, but for the sizes of superblocks.
  struct Shape {
    bool checked = false;
    std::uint32_t max_instructions = 96;
    const InlineSystemCalls* system_calls = nullptr;
    /// Superblocks that indirect transfers lead to are entered by their landing pads.
    bool lands = false;
    PadTest pad_test = PadTest::kLoop;
    TableIndex table_index = TableIndex::kLow16;
    bool saves_memory = false;
  };
  /// The state at `end`; nothing when some of it is left to the CPU. `code` is what the translator
  /// sees of the program.
  std::optional<MachineState> run(const CodeSource& code, TraceeAddr begin, TraceeAddr end,
                                  const MachineState& state, Shape shape);
  /// The same by the CPU alone; a jump to bt_test_leave has to be at the end.
  static MachineState run_natively(TraceeAddr begin, const MachineState& state);
  [[nodiscard]] std::size_t superblocks() const { return superblocks_; }
  /// Where the branches that left superblocks went, in the last run.
  [[nodiscard]] const std::map<TraceeAddr, TraceeAddr>& taken() const { return taken_; }
  /// What system calls are looked up in.
  [[nodiscard]] std::span<std::uint8_t> policy() const {
    return table_.bytes().subspan(kEntryTableBytes);
  }
  [[nodiscard]] static std::uint64_t& slot(Slot which);

  /// Of the superblock that runs, or ran last: for who looks at each of its instructions.
  [[nodiscard]] const Superblock& current() const { return current_; }
  [[nodiscard]] Branch code_range() const {
    return {code_.address(), code_.address() + code_.bytes().size()};
  }
  [[nodiscard]] TraceeAddr log_begin() const {
    return TraceeAddr{std::bit_cast<std::uintptr_t>(log_.data())};
  }
  [[nodiscard]] const Exit& exit_logged() const { return exits_.at(log_[0]); }
  /// Where a transfer goes that finds the landing pad of another place.
  [[nodiscard]] std::optional<TraceeAddr> wrong_target() const { return wrong_target_; }

 private:
  /// Enters a landing pad with the target of another: everything is left as it is.
  void expect_conflict(TraceeAddr entry, TraceeAddr head);
  /// Enters a checked superblock whose code has changed since: it leaves everything as it is.
  void expect_stale(TraceeAddr entry);
  static void expect_left(Special why, const Shape& shape);
  /// `lands`: it is entered by its landing pad.
  std::optional<TraceeAddr> translate_at(const CodeSource& code, TraceeAddr head, Shape shape,
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
