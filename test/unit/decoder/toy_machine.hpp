#pragma once
/// @file
/// Runs a ToyProgram and tells what happened twice: as executed addresses and as branch records.

#include <utility>
#include <vector>

#include "decoder/trace/record.hpp"
#include "test/support/ipt_oracle.hpp"
#include "test/unit/decoder/toy_program.hpp"

namespace backtrail::test {

/// How often unusual things happen: one step in so many; 0 = never.
struct ToyHabits {
  unsigned signals = 0;
  unsigned gaps = 0;
  unsigned wild_returns = 8;  ///< Of returns: one in so many goes somewhere unexpected.
};

class ToyMachine {
 public:
  /// Both are borrowed.
  ToyMachine(const ToyProgram& program, Random& random, ToyHabits habits);

  void step();
  void run(std::size_t steps) {
    while (steps-- != 0) step();
  }
  /// A signal arrives before the instruction at pc.
  void signal();
  /// Recording misses something; `from_known` says whether the record tells where it stopped.
  void gap(decoder::GapReason reason, bool from_known, TraceeAddr to);

  [[nodiscard]] TraceeAddr pc() const { return pc_; }
  /// All that happened, oldest first: instructions, and gaps as libipt reports them.
  [[nodiscard]] const std::vector<IptItem>& history() const { return history_; }
  /// The records since the last call.
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
  std::size_t block_begin_ = 0;  // history's size at the last record
  std::vector<decoder::Record> records_;
};

}  // namespace backtrail::test
