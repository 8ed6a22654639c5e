// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Values of variables as JSON, as docs/report-format.md describes it.

#include <vector>

#include "decoder/report/report.hpp"

namespace boost::json {
class object;
}

namespace backtrail::decoder {

/// Adds "last_calls".
void add_calls_json(const std::vector<ReportCall>& calls, boost::json::object& out);

/// Adds "stack_frames", "stack_frames_left_out" and "no_values".
void add_stack_json(const ReportStack& stack, boost::json::object& out);

}  // namespace backtrail::decoder
