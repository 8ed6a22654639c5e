// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The printf operation of agent expressions.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "server/agent/agent_expression.hpp"

namespace backtrail::server::agent {

/// Formats integers, characters, pointers and strings in the program's memory. Errors: kMalformed
/// (format, too few arguments), kUnsupported (floating point, wide characters).
Result<std::string> agent_printf(std::string_view format, std::span<const std::uint64_t> arguments,
                                 AgentMachine& machine);

}  // namespace backtrail::server::agent
