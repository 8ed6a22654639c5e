#pragma once
/// @file
/// Who listens on a TCP port.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace backtrail::server {

/// Socket inodes are found in /proc/net/tcp's text: the one listening on `port`, if any.
[[nodiscard]] std::optional<std::uint64_t> listening_inode(std::string_view proc_net_tcp,
                                                           std::uint16_t port);

/// "process 123 (name)" that listens on a port of this machine, as far as this user may see.
[[nodiscard]] std::optional<std::string> find_port_owner(std::uint16_t port);

}  // namespace backtrail::server
