// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Makes random programs of real machine code whose every instruction the test knows.

#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "decoder/trace/code_reader.hpp"

namespace backtrail::test {

using Random = std::mt19937;

/// Returns a uniformly distributed number in [0, bound).
[[nodiscard]] inline std::uint32_t pick(Random& random, std::size_t bound) {
  return static_cast<std::uint32_t>(random() % bound);
}

enum class ToyKind : std::uint8_t {
  kPlain,
  kPop,  ///< Pops the return address that a kNextCall pushed.
  kConditional,
  kJump,
  kIndirectJump,
  kCall,
  kNextCall,
  kIndirectCall,
  kReturn,
  kSystemCall,
  kSigreturn,  ///< A system call that returns to where a signal arrived.
};

struct ToyInsn {
  TraceeAddr at;
  std::uint8_t length = 0;
  ToyKind kind = ToyKind::kPlain;
  TraceeAddr target;

  [[nodiscard]] TraceeAddr behind() const { return at + length; }
};

/// A program of functions in modules far apart. Direct jumps go forward and direct calls go to
/// later functions, so that every loop contains a conditional or indirect branch.
class ToyProgram : public decoder::CodeReader {
 public:
  ToyProgram(arch::Isa isa, Random& random);

  [[nodiscard]] arch::Isa isa() const override { return isa_; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override;

  [[nodiscard]] const ToyInsn& at(TraceeAddr address) const { return insns_.at(address); }
  [[nodiscard]] const std::vector<TraceeAddr>& functions() const { return functions_; }
  /// Returns the starts of basic blocks in the function that contains `address`.
  [[nodiscard]] const std::vector<TraceeAddr>& blocks_near(TraceeAddr address) const;
  /// Returns the address that signal handlers return to.
  [[nodiscard]] TraceeAddr restorer() const { return restorer_; }
  /// Returns the addresses of the instructions from `first` to `last`, both included; empty if
  /// `last` does not follow `first` in memory.
  [[nodiscard]] std::vector<std::uint64_t> expand(TraceeAddr first, TraceeAddr last) const;

  /// Makes code in [begin, end) unreadable from now on.
  void hide(TraceeAddr begin, TraceeAddr end) {
    hidden_begin_ = begin;
    hidden_end_ = end;
  }

 private:
  struct Fixup;

  void add_function(TraceeAddr base, std::size_t index, Random& random, std::vector<Fixup>& fixups);
  void add_body(Random& random);
  void add_exit(bool last, std::size_t function, Random& random, std::vector<Fixup>& fixups);
  void emit(ToyKind kind, std::initializer_list<std::uint8_t> bytes, TraceeAddr target = {});
  [[nodiscard]] TraceeAddr here() const;
  void apply(const Fixup& fixup);

  arch::Isa isa_;
  std::map<TraceeAddr, std::vector<std::uint8_t>> bytes_;  // By function.
  std::vector<std::uint8_t>* code_ = nullptr;              // The function being made.
  TraceeAddr base_;
  std::map<TraceeAddr, ToyInsn> insns_;
  std::vector<TraceeAddr> functions_;
  std::map<TraceeAddr, std::vector<TraceeAddr>> blocks_;  // By function.
  TraceeAddr restorer_;
  TraceeAddr hidden_begin_;
  TraceeAddr hidden_end_;
};

}  // namespace backtrail::test
