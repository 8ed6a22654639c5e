#pragma once
/// @file
/// What gdb attaches to a breakpoint: conditions and commands to be run here.

#include <functional>
#include <optional>
#include <vector>

#include "server/agent/agent_expression.hpp"
#include "server/session/packet_text.hpp"
#include "server/target/target.hpp"

namespace backtrail::server::handlers {

struct BreakpointProgram {
  std::vector<agent::AgentExpression> conditions;  ///< One that is true is enough; none: true.
  /// With commands the thread runs them and goes on; the client never hears of the hit.
  std::vector<agent::AgentExpression> commands;

  [[nodiscard]] bool empty() const { return conditions.empty() && commands.empty(); }
};

/// Parses the options of a Z packet: `[;X LEN,EXPR...][;cmds:PERSIST,X LEN,EXPR...]`. Options of
/// other names are skipped.
[[nodiscard]] std::optional<BreakpointProgram> parse_breakpoint_program(PacketText& text);

/// The program as a breakpoint's condition: whether a hit is to be reported. An expression that
/// fails counts as true, so that no hit gets lost. `target` is borrowed and must outlive it.
/// Output of commands goes to stderr.
[[nodiscard]] std::function<bool(ThreadId)> make_condition(Target& target,
                                                           BreakpointProgram program);

}  // namespace backtrail::server::handlers
