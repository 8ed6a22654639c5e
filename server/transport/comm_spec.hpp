// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Place to listen on, from the command line (gdbserver's COMM).

#include <cstdint>
#include <string>
#include <string_view>

#include "server/transport/explained.hpp"

namespace backtrail::server {

enum class CommKind : std::uint8_t { kTcp, kUnix, kStdio, kDevice };

/// One place to listen on.
struct CommSpec {
  CommKind kind = CommKind::kTcp;
  std::string host;  ///< Host name or address for kTcp; never empty (":PORT" means 127.0.0.1).
  std::uint16_t port = 0;  ///< Port for kTcp; 0 = any free port.
  std::string path;        ///< Path for kUnix and kDevice.

  bool operator==(const CommSpec&) const = default;
};

/// Parses one of
///   HOST:PORT  [V6]:PORT  :PORT (this machine only)  0.0.0.0:PORT (every interface)
///   unix:PATH  -  stdio  PATH of a character device
/// A word without a colon is a device's path; opening it shows whether the device exists.
[[nodiscard]] Explained<CommSpec> parse_comm(std::string_view text);

}  // namespace backtrail::server
