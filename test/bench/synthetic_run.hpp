#pragma once
/// @file
/// A long run of a synthetic program with the branch mix of compiled code.

#include <cstdint>
#include <random>
#include <vector>

#include "decoder/trace/code_reader.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::bench {

/// Functions on levels; each calls functions of the next level. They have forward branches over a
/// few instructions, short loops, direct calls and a few indirect ones. About half of the taken
/// branches are conditional, and a third are calls and returns.
class SyntheticRun : public decoder::CodeReader {
 public:
  /// @param functions Number of functions on each level: sets how much code is hot.
  SyntheticRun(std::size_t functions, std::size_t records);

  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override;

  /// Returns the code's address.
  [[nodiscard]] static TraceeAddr base();
  [[nodiscard]] const std::vector<decoder::Record>& records() const { return records_; }
  [[nodiscard]] TraceeAddr pc() const { return records_.back().to; }
  /// Returns how many conditional jumps were not taken.
  [[nodiscard]] std::size_t not_taken() const { return not_taken_; }

 private:
  enum class ItemKind : std::uint8_t { kSkip, kLoop, kCall, kIndirectCall, kJump, kReturn };
  /// Straight code, then a branch of `length` bytes at `branch`.
  struct Item {
    ItemKind kind;
    TraceeAddr begin;
    TraceeAddr branch;
    std::uint8_t length;
    std::size_t callee;
  };
  struct Function {
    TraceeAddr entry;
    std::vector<Item> items;
  };

  void make_function(std::size_t index, std::size_t functions);
  void emit(std::initializer_list<std::uint8_t> bytes) { code_.insert(code_.end(), bytes); }
  void run(std::size_t function, TraceeAddr return_to);
  [[nodiscard]] bool one_in(std::uint32_t n) { return random_() % n == 0; }
  [[nodiscard]] bool done() const { return records_.size() >= wanted_; }
  void record(TraceeAddr from, TraceeAddr to) { records_.push_back(decoder::branch(from, to)); }

  std::mt19937 random_{20071213};
  std::vector<std::uint8_t> code_;
  std::vector<Function> functions_;
  std::vector<decoder::Record> records_;
  std::size_t wanted_;
  std::size_t not_taken_ = 0;
};

}  // namespace backtrail::bench

// SPDX-License-Identifier: Apache-2.0
