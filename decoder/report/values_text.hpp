// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes values of variables as text for terminals.

#include <string>
#include <vector>

#include "decoder/report/report.hpp"

namespace backtrail::decoder {

/// Returns "(a=1, b=?)".
[[nodiscard]] std::string arguments_text(const std::vector<Variable>& arguments);

/// Returns a demangled name without the types of its parameters.
[[nodiscard]] std::string name_without_parameters(const std::string& name);

/// Returns the lines of the last calls; empty if there are none.
[[nodiscard]] std::string calls_text(const std::vector<ReportCall>& calls);

/// Returns the lines of a stack with its variables; empty if there are no frames.
[[nodiscard]] std::string stack_text(const ReportStack& stack);

}  // namespace backtrail::decoder
