#pragma once
/// @file
/// Agent expressions: the bytecode that gdb attaches to breakpoints as conditions and commands.
/// Source: GDB manual, "The GDB Agent Expression Mechanism".

#include <cstdint>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/base/result.hpp"

namespace backtrail::server::agent {

/// What an expression can see of the stopped thread.
class AgentMachine {
 public:
  virtual ~AgentMachine() = default;
  /// A register's value, in gdb's numbering. An error for those wider than 64 bits.
  virtual Result<std::uint64_t> read_register(std::size_t number) = 0;
  /// All of `out` or an error.
  virtual Result<void> read_memory(TraceeAddr address, std::span<std::uint8_t> out) = 0;
  /// Output of the printf operation.
  virtual void print(std::string_view text) = 0;
};

/// One expression. Immutable; the bytes are a stranger's, so evaluation is bounded in steps and
/// stack and fails rather than trusting them.
class AgentExpression {
 public:
  explicit AgentExpression(std::vector<std::uint8_t> bytecode) : bytecode_{std::move(bytecode)} {}

  /// The value on top of the stack at the end. Errors: kMalformed (bytecode, stack, division by
  /// zero, too many steps), kUnsupported (floating point, tracing), and the machine's own.
  Result<std::uint64_t> evaluate(AgentMachine& machine) const;
  /// As evaluate, for expressions that only act.
  Result<void> run(AgentMachine& machine) const;

 private:
  std::vector<std::uint8_t> bytecode_;
};

}  // namespace backtrail::server::agent
