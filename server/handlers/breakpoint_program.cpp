// SPDX-License-Identifier: Apache-2.0
#include "server/handlers/breakpoint_program.hpp"

#include <algorithm>
#include <cstdio>
#include <utility>

#include <fmt/format.h>

#include "server/rsp/hex.hpp"

namespace backtrail::server::handlers {
namespace {

/// A stopped thread, as agent expressions read it.
class ThreadMachine : public agent::AgentMachine {
 public:
  ThreadMachine(Target& target, ThreadId thread) : target_{target}, thread_{thread} {}

  Result<std::uint64_t> read_register(std::size_t number) override {
    BT_TRY(const arch::cpu::GdbRegisterSet* set, target_.register_set(thread_.pid));
    if (!registers_) {
      BT_TRY(registers_, target_.read_registers(thread_));
    }
    BT_TRY(const std::vector<std::uint8_t> bytes, set->read_one(number, *registers_));
    if (bytes.size() > sizeof(std::uint64_t)) {
      return fail(TraceErrc::kUnsupported, "agent register", number);
    }
    std::uint64_t value = 0;
    for (std::size_t i = bytes.size(); i > 0; --i) value = (value << 8) | bytes[i - 1];
    return value;
  }

  Result<void> read_memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    BT_TRY(const std::size_t got, target_.read_memory(thread_.pid, address, out));
    if (got != out.size()) {
      return fail(TraceErrc::kUnreadable, "agent memory", address.value());
    }
    return {};
  }

  void print(std::string_view text) override {
    fmt::print(stderr, "{}", text);
    std::fflush(stderr);
  }

 private:
  Target& target_;
  ThreadId thread_;
  std::optional<arch::cpu::RawRegisters> registers_;
};

/// Takes "XLEN,HEX": an expression of LEN bytes.
std::optional<agent::AgentExpression> take_expression(PacketText& text) {
  if (!text.take('X')) return std::nullopt;
  const auto length = text.take_hex();
  if (!length || !text.take(',') || *length > text.rest().size() / 2) return std::nullopt;
  const std::string_view digits = text.rest().substr(0, *length * 2);
  auto bytes = rsp::from_hex(digits);
  if (!bytes) return std::nullopt;
  text.take(digits);
  return agent::AgentExpression{std::move(*bytes)};
}

bool take_expressions(PacketText& text, std::vector<agent::AgentExpression>& out) {
  while (text.next_is('X')) {
    auto expression = take_expression(text);
    if (!expression) return false;
    out.push_back(std::move(*expression));
  }
  return true;
}

bool is_true(const BreakpointProgram& program, ThreadMachine& machine) {
  const auto holds = [&machine](const agent::AgentExpression& condition) {
    const auto value = condition.evaluate(machine);
    return !value || *value != 0;
  };
  return program.conditions.empty() || std::ranges::any_of(program.conditions, holds);
}

}  // namespace

std::optional<BreakpointProgram> parse_breakpoint_program(PacketText& text) {
  BreakpointProgram program;
  while (!text.at_end()) {
    if (!text.take(';')) return std::nullopt;
    if (text.next_is('X')) {
      if (!take_expressions(text, program.conditions)) return std::nullopt;
    } else if (text.take("cmds:")) {
      if (!text.take_hex() || !text.take(',')) return std::nullopt;
      if (!take_expressions(text, program.commands)) return std::nullopt;
    } else {
      while (!text.at_end() && !text.next_is(';')) text.take(text.rest().front());
    }
  }
  return program;
}

std::function<bool(ThreadId)> make_condition(Target& target, BreakpointProgram program) {
  if (program.empty()) return {};
  return [&target, program = std::move(program)](ThreadId thread) {
    ThreadMachine machine{target, thread};
    if (!is_true(program, machine)) return false;
    for (const agent::AgentExpression& command : program.commands) {
      // A failed command must not hide the breakpoint's hit.
      if (!command.run(machine)) return true;
    }
    return program.commands.empty();
  };
}

}  // namespace backtrail::server::handlers
