// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Runs a ToyProgram, and reports its execution both as addresses and as branch records.

#include <utility>
#include <vector>

#include "decoder/trace/record.hpp"
#include "test/support/ipt_oracle.hpp"
#include "test/unit/decoder/toy_program.hpp"

namespace backtrail::test {

/// Frequencies of unusual events: one in that number of steps; 0 for never.
struct ToyHabits {
  unsigned signals = 0;
  unsigned gaps = 0;
  unsigned wild_returns = 8;  ///< One in that number of returns goes to an unexpected place.
};

class ToyMachine {
 public:
  /// Borrows both.
  ToyMachine(const ToyProgram& program, Random& random, ToyHabits habits);

  void step();
  void run(std::size_t steps) {
    while (steps-- != 0) step();
  }
  /// Delivers a signal before the instruction at the pc.
  void signal();
  /// Makes recording miss something. If `from_known`, the record states where recording stopped.
  void gap(decoder::GapReason reason, bool from_known, TraceeAddr to);

  [[nodiscard]] TraceeAddr pc() const { return pc_; }
  /// Returns everything that happened, oldest first: instructions, and gaps as libipt reports them.
  [[nodiscard]] const std::vector<IptItem>& history() const { return history_; }
  /// Returns the records since the last call.
  std::vector<decoder::Record> take_records() { return std::exchange(records_, {}); }

 private:
  void arrive(TraceeAddr at);
  void branch_to(TraceeAddr to);
  void go_back();
  [[nodiscard]] TraceeAddr random_function() {
    return program_.functions()[pick(random_, program_.functions().size())];
  }
  [[nodiscard]] TraceeAddr random_block() {
    const std::vector<TraceeAddr>& blocks = program_.blocks_near(pc_);
    return blocks[pick(random_, blocks.size())];
  }

  const ToyProgram& program_;
  Random& random_;
  ToyHabits habits_;
  TraceeAddr pc_;
  std::vector<TraceeAddr> stack_;
  std::vector<TraceeAddr> interrupted_;
  std::vector<IptItem> history_;
  std::size_t block_begin_ = 0;  // Size of history_ at the last record.
  std::vector<decoder::Record> records_;
};

}  // namespace backtrail::test
