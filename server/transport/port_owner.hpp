// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds the process that listens on a TCP port.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace backtrail::server {

/// Returns the inode of the socket that listens on `port`, from the text of /proc/net/tcp; nullopt
/// if none.
[[nodiscard]] std::optional<std::uint64_t> listening_inode(std::string_view proc_net_tcp,
                                                           std::uint16_t port);

/// Returns "process 123 (name)" for the listener on a port of this machine; nullopt if this user
/// cannot see it.
[[nodiscard]] std::optional<std::string> find_port_owner(std::uint16_t port);

}  // namespace backtrail::server
