#pragma once
/// @file
/// Wherever translated code is stopped, the program is in one of the states that it has natively.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {

/// Code in this process with a jump to bt_test_leave at its end, and the memory that it uses.
struct SteppedProgram {
  CodeSource source;
  TraceeAddr begin;
  TraceeAddr end;
  MachineState before;
  std::span<const std::uint8_t> data;
  std::span<const std::uint8_t> stack;
};

class ComparedStops {
 public:
  /// Runs it natively, in steps.
  explicit ComparedStops(SteppedProgram program);
  /// Runs it translated, in steps; everything but `source` is as it was before. What differs
  /// first, or nothing.
  [[nodiscard]] std::string differences(TranslatedRun& run, const CodeSource& source,
                                        const TranslatedRun::Shape& shape);
  /// Places in translated code that were compared.
  [[nodiscard]] std::uint64_t stops() const { return stops_; }
  /// It came to the program's end; otherwise some of it was left to the CPU.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  struct Stop {
    TraceeAddr pc;
    MachineState state;
    std::uint64_t memory = 0;
    std::uint64_t taken = 0;  ///< Branches before it.
    bool vanishes = false;    ///< Nothing stands for the instruction in translated code.
  };

  [[nodiscard]] std::uint64_t hash_memory(std::uint64_t sp) const;
  void add_native(TraceeAddr pc, const MachineState& state);
  void compare(const TranslatedRun& run, TraceeAddr pc, const MachineState& state);
  /// From where it was up to here; nothing: it is not on its way.
  [[nodiscard]] std::optional<std::size_t> find(const Stop& stop) const;
  [[nodiscard]] std::string describe(const TranslatedRun& run, TraceeAddr pc,
                                     const Stop& stop) const;

  SteppedProgram program_;
  std::vector<Stop> native_;
  std::size_t at_ = 0;  ///< Where the program is, of native_.
  bool begun_ = false;
  std::uint64_t stops_ = 0;
  bool ended_ = false;
  std::string difference_;
  std::uint64_t taken_before_ = 0;  ///< Branches before the superblock's head.
  std::size_t superblock_ = 0;
};

}  // namespace backtrail::arch::x86::translate
