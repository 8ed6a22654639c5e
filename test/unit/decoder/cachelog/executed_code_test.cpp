// SPDX-License-Identifier: Apache-2.0
// Compares the code that is told with the code that made-up threads executed.

#include "decoder/cachelog/executed_code.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "decoder/trace/code_history.hpp"

namespace backtrail::decoder {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

constexpr std::uint64_t kBase = 0x1004;  // no multiple of eight
constexpr std::uint64_t kInsns = 96;
constexpr std::uint64_t kInsnBytes = 2;
using Insn = std::array<std::uint8_t, kInsnBytes>;

/// A thread that executes superblocks with and without bytes, and code that nobody translated,
/// while its code changes all the time. Each instruction is mov $VALUE, %al, branches too.
class MadeUpThread {
 public:
  explicit MadeUpThread(unsigned seed) : random_{seed}, code_{exits_} {
    for (Insn& insn : memory_) insn = {0xb0, 0};
    at_ = any_address();
  }

  void run(int steps) {
    for (int i = 0; i < steps; ++i) run_once();
    code_.pause(records_);
    collect();
  }

  /// Compares. Returns how many instructions are told.
  std::size_t judge() {
    CodeHistory history{arch::Isa::kAmd64, facts_};
    std::size_t told = 0;
    for (const Truth& truth : truths_) {
      const ExecutedInsn* insn = history.at(truth.record, truth.pc);
      if (insn == nullptr) continue;
      ++told;
      if (!std::ranges::equal(insn->view(), truth.bytes)) {
        ADD_FAILURE() << "record " << truth.record << ", " << std::hex << truth.pc.value() << ": "
                      << int{insn->bytes[1]} << ", truly " << int{truth.bytes[1]};
        break;
      }
    }
    return told;
  }
  [[nodiscard]] std::size_t executed() const { return truths_.size(); }

 private:
  struct Truth {
    std::uint64_t record = 0;
    TraceeAddr pc;
    Insn bytes{};
  };
  struct PathInsn {
    TraceeAddr pc;
    Insn bytes{};
    std::size_t passed = 0;  ///< The superblock's branches before it.
  };
  struct Block {
    std::uint32_t number = 0;
    bool keeps_code = false;
    std::vector<PathInsn> path = {};
  };

  std::uint64_t below(std::uint64_t most) { return random_() % most; }
  TraceeAddr any_address() { return TraceeAddr{kBase + kInsnBytes * below(kInsns - 40)}; }
  Insn& memory(TraceeAddr pc) { return memory_.at((pc.value() - kBase) / kInsnBytes); }
  void execute(TraceeAddr pc, const Insn& bytes) { truths_.push_back({records_ - 1, pc, bytes}); }
  void collect() {
    std::vector<ValueFact> more;
    code_.hand_on(more);
    for (ValueFact fact : more) {
      --fact.record;
      facts_.push_back(fact);
    }
  }

  Block& block_at(TraceeAddr start) {
    std::vector<Block>& known = blocks_[start];
    if (!known.empty() && below(4) != 0) return known[below(known.size())];
    Block block{.keeps_code = below(3) != 0};
    std::vector<TakenBranch> branches;
    std::vector<TakenBranch> ranges;
    std::vector<std::uint8_t> bytes;
    TraceeAddr pc = start;
    for (std::uint64_t left = 1 + below(3); left != 0; --left) {
      for (std::uint64_t insns = 1 + below(6); insns != 0; --insns) {
        block.path.push_back({pc, memory(pc), branches.size()});
        bytes.insert(bytes.end(), memory(pc).begin(), memory(pc).end());
        const TraceeAddr next = pc + kInsnBytes;
        if (!ranges.empty() && ranges.back().second == pc) {
          ranges.back().second = next;
        } else {
          ranges.emplace_back(pc, next);
        }
        pc = next;
      }
      if (left == 1) break;
      // Some jump to the next instruction, or within the superblock.
      const TraceeAddr target = below(4) == 0   ? pc
                                : below(4) == 0 ? block.path[below(block.path.size())].pc
                                                : any_address();
      branches.emplace_back(block.path.back().pc, target);
      pc = target;
    }
    block.number = exits_.add_block(start, branches);
    if (block.keeps_code) exits_.code().add(block.number, branches, ranges, bytes);
    known.push_back(std::move(block));
    return known.back();
  }

  /// Executes the first `count` instructions of a superblock, with its branches between them.
  /// @param begins_line  Called before each line of them.
  template <typename BeginsLine, typename Branch>
  void execute_path(const Block& block, std::size_t count, BeginsLine begins_line, Branch branch) {
    for (std::size_t i = 0; i < count; ++i) {
      const PathInsn& insn = block.path[i];
      if (i == 0 || insn.passed != block.path[i - 1].passed) begins_line(insn.passed, i);
      execute(insn.pc, block.keeps_code ? insn.bytes : memory(insn.pc));
      if (i + 1 < count && block.path[i + 1].passed != insn.passed) {
        branch(insn.pc, block.path[i + 1].pc);
        ++records_;
      }
    }
  }

  void leave_block() {
    const Block& block = block_at(at_);
    const std::size_t count = below(8) == 0 ? 0 : 1 + below(block.path.size());
    LoggedExit exit{.block = exits_.block(block.number),
                    .block_number = block.number,
                    .executed = static_cast<std::uint16_t>(count)};
    const std::size_t passed = count == 0 ? 0 : block.path[count - 1].passed;
    exit.block.branches = exit.block.branches.first(passed);
    const std::uint64_t kind = count == 0 ? 2 : below(3);
    exit.kind = static_cast<LoggedExitKind>(kind);
    const TraceeAddr last = count == 0 ? at_ : block.path[count - 1].pc;
    if (exit.kind == LoggedExitKind::kContinue) {
      exit.to = count == 0 ? at_ : last + kInsnBytes;
    } else {
      exit.from = last;
      exit.to = any_address();
    }
    code_.leave(exit, records_);
    execute_path(
        block, count, [](std::size_t, std::size_t) {}, [](TraceeAddr, TraceeAddr) {});
    at_ = exit.to;
    if (exit.kind != LoggedExitKind::kContinue) ++records_;
  }

  void stop_in_block() {
    const Block& block = block_at(at_);
    const std::size_t count = below(block.path.size());
    code_.arrive(at_, records_);
    if (count == 0) return code_.execute(block.number, 0, at_, records_);
    const std::size_t last_passed = block.path[count - 1].passed;
    const TraceeAddr end = block.path[count - 1].pc + kInsnBytes;
    execute_path(
        block, count,
        [&](std::size_t passed, std::size_t) {
          code_.execute(block.number, passed,
                        passed == last_passed ? std::optional{end} : std::nullopt, records_);
        },
        [&](TraceeAddr from, TraceeAddr to) { code_.take(branch(from, to), records_); });
    at_ = end;
  }

  void step_natively() {
    code_.arrive(at_, records_);
    for (std::uint64_t count = 1 + below(4); count != 0; --count) {
      if (below(2) == 0) code_.step(at_, memory(at_), records_);
      execute(at_, memory(at_));
      if (below(3) != 0) {
        at_ = at_ + kInsnBytes;
        continue;
      }
      const TraceeAddr to = any_address();
      code_.take(branch(at_, to), records_);
      move_to(to);
    }
  }

  void move_to(TraceeAddr to) {
    at_ = to;
    ++records_;
  }

  void run_once() {
    if (at_.value() >= kBase + kInsnBytes * (kInsns - 30)) {
      execute(at_, memory(at_));
      const TraceeAddr to = any_address();
      code_.take(branch(at_, to), records_);
      move_to(to);
    }
    if (below(2) == 0) memory(any_address())[1] = static_cast<std::uint8_t>(below(256));
    switch (below(16)) {
      case 0:
        step_natively();
        break;
      case 1:
        stop_in_block();
        break;
      case 2: {
        const TraceeAddr handler = any_address();
        code_.take(async_transfer(at_, handler), records_);
        move_to(handler);
        break;
      }
      case 3:
        if (below(8) == 0) {
          const TraceeAddr to = any_address();
          code_.take(gap(GapReason::kNotRecorded, at_, to), records_);
          move_to(to);
        }
        break;
      case 4:
        code_.pause(records_);
        break;
      default:
        leave_block();
    }
    collect();
  }

  std::mt19937 random_;
  std::array<Insn, kInsns> memory_{};
  ExitTable exits_;
  ExecutedCode code_;
  std::map<TraceeAddr, std::vector<Block>> blocks_;
  TraceeAddr at_;
  std::uint64_t records_ = 1;
  std::vector<ValueFact> facts_;
  std::vector<Truth> truths_;
};

TEST(ExecutedCodeOf, MadeUpThreadsIsTold) {
  std::size_t told = 0;
  std::size_t executed = 0;
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    MadeUpThread thread{seed};
    thread.run(400);
    told += thread.judge();
    executed += thread.executed();
  }
  // Two of three superblocks have bytes.
  EXPECT_GT(told * 10, executed * 4);
  EXPECT_LT(told, executed);
}

}  // namespace
}  // namespace backtrail::decoder
