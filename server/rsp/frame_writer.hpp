#pragma once
/// @file
/// Packets and notifications as they go over the wire.

#include <string>
#include <string_view>

namespace backtrail::server::rsp {

/// "$payload#cc", run-length coded. The payload is escaped already where it is binary.
[[nodiscard]] std::string frame_packet(std::string_view payload);
/// "%payload#cc", run-length coded.
[[nodiscard]] std::string frame_notification(std::string_view payload);

/// Replaces runs: `c*n` is c and n - 29 more of it. n is printable and never '$', '#', '+' or '-';
/// 3 to 97 repeats a run. Source: GDB manual, "Overview" of the remote protocol.
[[nodiscard]] std::string encode_runs(std::string_view payload);

}  // namespace backtrail::server::rsp
