#pragma once
/// @file
/// Random programs made of real machine code, whose every instruction the test knows by itself.

#include <cstdint>
#include <map>
#include <random>
#include <span>
#include <vector>

#include "decoder/trace/code_reader.hpp"

namespace backtrail::test {

using Random = std::mt19937;

/// Uniform in [0, bound).
[[nodiscard]] inline std::uint32_t pick(Random& random, std::size_t bound) {
  return static_cast<std::uint32_t>(random() % bound);
}

enum class ToyKind : std::uint8_t {
  kPlain,
  kPop,  ///< Takes the return address that a kNextCall pushed.
  kConditional,
  kJump,
  kIndirectJump,
  kCall,
  kNextCall,
  kIndirectCall,
  kReturn,
  kSystemCall,
  kSigreturn,  ///< A system call that goes back to where a signal came.
};

struct ToyInsn {
  TraceeAddr at;
  std::uint8_t length = 0;
  ToyKind kind = ToyKind::kPlain;
  TraceeAddr target;

  [[nodiscard]] TraceeAddr behind() const { return at + length; }
};

/// Functions in modules far from each other. Direct jumps go forward and direct calls to later
/// functions, so that every loop has a conditional or an indirect branch in it.
class ToyProgram : public decoder::CodeReader {
 public:
  ToyProgram(arch::Isa isa, Random& random);

  [[nodiscard]] arch::Isa isa() const override { return isa_; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override;

  [[nodiscard]] const ToyInsn& at(TraceeAddr address) const { return insns_.at(address); }
  [[nodiscard]] const std::vector<TraceeAddr>& functions() const { return functions_; }
  /// Where basic blocks begin, in the function that `address` lies in.
  [[nodiscard]] const std::vector<TraceeAddr>& blocks_near(TraceeAddr address) const;
  /// Where signal handlers return to.
  [[nodiscard]] TraceeAddr restorer() const { return restorer_; }
  /// The addresses of a block's instructions, first to last inclusive; empty when `last` is not
  /// among those that follow `first` in memory.
  [[nodiscard]] std::vector<std::uint64_t> expand(TraceeAddr first, TraceeAddr last) const;

  /// From now on code in [begin, end) cannot be read.
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
  std::map<TraceeAddr, std::vector<std::uint8_t>> bytes_;  // by function
  std::vector<std::uint8_t>* code_ = nullptr;              // of the function being made
  TraceeAddr base_;
  std::map<TraceeAddr, ToyInsn> insns_;
  std::vector<TraceeAddr> functions_;
  std::map<TraceeAddr, std::vector<TraceeAddr>> blocks_;  // by function
  TraceeAddr restorer_;
  TraceeAddr hidden_begin_;
  TraceeAddr hidden_end_;
};

}  // namespace backtrail::test
