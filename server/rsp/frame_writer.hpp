// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Packets and notifications in their wire form.

#include <string>
#include <string_view>

namespace backtrail::server::rsp {

/// Returns "$payload#cc", run-length coded. Binary parts of the payload must be escaped already.
[[nodiscard]] std::string frame_packet(std::string_view payload);
/// Returns "%payload#cc", run-length coded.
[[nodiscard]] std::string frame_notification(std::string_view payload);

/// Codes runs: `c*n` means c and n - 29 repeats of it. n is printable and never '$', '#', '+' or
/// '-'; a run has 3 to 97 repeats. Source: GDB manual, "Overview" of the remote protocol.
[[nodiscard]] std::string encode_runs(std::string_view payload);

}  // namespace backtrail::server::rsp
