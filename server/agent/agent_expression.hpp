// SPDX-License-Identifier: Apache-2.0
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

/// State of the stopped thread that an expression can read.
class AgentMachine {
 public:
  virtual ~AgentMachine() = default;
  /// Returns a register's value, by gdb's number. Fails for registers wider than 64 bits.
  virtual Result<std::uint64_t> read_register(std::size_t number) = 0;
  /// Fills all of `out`, or fails.
  virtual Result<void> read_memory(TraceeAddr address, std::span<std::uint8_t> out) = 0;
  /// Receives the output of the printf operation.
  virtual void print(std::string_view text) = 0;
};

/// One expression. Immutable. Its bytes are untrusted: evaluation has limits on steps and stack,
/// and fails on malformed code.
class AgentExpression {
 public:
  explicit AgentExpression(std::vector<std::uint8_t> bytecode) : bytecode_{std::move(bytecode)} {}

  /// Returns the value on top of the stack at the end. Errors: kMalformed (bytecode, stack,
  /// division by zero, too many steps), kUnsupported (floating point, tracing), and the machine's.
  Result<std::uint64_t> evaluate(AgentMachine& machine) const;
  /// Evaluates an expression that leaves no value.
  Result<void> run(AgentMachine& machine) const;

 private:
  std::vector<std::uint8_t> bytecode_;
};

}  // namespace backtrail::server::agent
