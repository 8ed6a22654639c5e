// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Conditions and commands that gdb attaches to a breakpoint and the server evaluates.

#include <functional>
#include <optional>
#include <vector>

#include "server/agent/agent_expression.hpp"
#include "server/session/packet_text.hpp"
#include "server/target/target.hpp"

namespace backtrail::server::handlers {

struct BreakpointProgram {
  std::vector<agent::AgentExpression>
      conditions;  ///< A hit counts if one is true; empty = every hit counts.
  /// Commands to run at a hit. With commands, the thread then continues and the client is not told.
  std::vector<agent::AgentExpression> commands;

  [[nodiscard]] bool empty() const { return conditions.empty() && commands.empty(); }
};

/// Parses the options of a Z packet: `[;X LEN,EXPR...][;cmds:PERSIST,X LEN,EXPR...]`. Skips unknown
/// options. nullopt if malformed.
[[nodiscard]] std::optional<BreakpointProgram> parse_breakpoint_program(PacketText& text);

/// Returns a condition that says whether to report a hit. An expression that fails counts as true,
/// so that no hit is lost. Borrows `target`, which must outlive the condition. Output of commands
/// goes to stderr.
[[nodiscard]] std::function<bool(ThreadId)> make_condition(Target& target,
                                                           BreakpointProgram program);

}  // namespace backtrail::server::handlers
