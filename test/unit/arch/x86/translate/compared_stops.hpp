// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Checks that wherever translated code is stopped, the program's state is one of its native
/// states.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/x86/translate/program_state.hpp"
#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {

/// Code in this process, which ends with a jump to bt_test_leave, and the memory that it uses.
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
  /// Single-steps the program natively.
  explicit ComparedStops(SteppedProgram program);
  /// Single-steps the translated program. Everything but `source` must be as it was before. Returns
  /// the first difference; empty if there is none.
  [[nodiscard]] std::string differences(TranslatedRun& run, const CodeSource& source,
                                        const TranslatedRun::Shape& shape);
  /// Returns the number of places in translated code that were compared.
  [[nodiscard]] std::uint64_t stops() const { return stops_; }
  /// Returns true if the program reached its end; otherwise some of it was untranslatable.
  [[nodiscard]] bool ended() const { return ended_; }

 private:
  struct Stop {
    TraceeAddr pc;
    MachineState state;
    std::uint64_t memory = 0;
    std::uint64_t taken = 0;  ///< Branches taken before it.
    bool vanishes = false;    ///< The instruction has no translated code.
  };

  [[nodiscard]] std::uint64_t hash_memory(std::uint64_t sp) const;
  void add_native(TraceeAddr pc, const MachineState& state);
  void compare(const TranslatedRun& run, TraceeAddr pc, const MachineState& state);
  /// Returns the index of a matching native stop from the current one on; nullopt if there is none.
  [[nodiscard]] std::optional<std::size_t> find(const Stop& stop) const;
  [[nodiscard]] std::uint64_t true_value(const ValuePoint& point,
                                         const ProgramState& program) const;
  /// Returns false if the values recorded until now are not those of the superblock's points, or
  /// a new one is not the program's.
  [[nodiscard]] bool has_recorded(const TranslatedRun& run, std::uint32_t offset,
                                  const ProgramState& program);
  [[nodiscard]] std::string describe(const TranslatedRun& run, TraceeAddr pc,
                                     const Stop& stop) const;

  SteppedProgram program_;
  std::vector<Stop> native_;
  std::size_t at_ = 0;  ///< Index of the program's current stop in native_.
  bool begun_ = false;
  std::uint64_t stops_ = 0;
  bool ended_ = false;
  std::string difference_;
  std::uint64_t taken_before_ = 0;  ///< Branches taken before the start pc of the superblock.
  std::size_t superblock_ = 0;
  std::size_t values_seen_ = 0;  ///< Number of the superblock's values seen.
};

}  // namespace backtrail::arch::x86::translate
