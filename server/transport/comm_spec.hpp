#pragma once
/// @file
/// Where to listen, as the command line says it (gdbserver's COMM).

#include <cstdint>
#include <string>
#include <string_view>

#include "server/transport/explained.hpp"

namespace backtrail::server {

enum class CommKind : std::uint8_t { kTcp, kUnix, kStdio, kDevice };

/// One place to be reached at.
struct CommSpec {
  CommKind kind = CommKind::kTcp;
  std::string host;        ///< kTcp; never empty (":PORT" means 127.0.0.1).
  std::uint16_t port = 0;  ///< kTcp; 0 = any free one.
  std::string path;        ///< kUnix, kDevice.

  bool operator==(const CommSpec&) const = default;
};

/// Reads one of
///   HOST:PORT  [V6]:PORT  :PORT (this machine only)  0.0.0.0:PORT (every interface)
///   unix:PATH  -  stdio  PATH of a character device
/// A word without a colon is a device's path; whether there is one shows when it is opened.
[[nodiscard]] Explained<CommSpec> parse_comm(std::string_view text);

}  // namespace backtrail::server
