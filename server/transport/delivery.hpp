// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a socket may be closed without loss.

namespace backtrail::server {

/// Returns true if the peer has everything that was written to the socket (SIOCOUTQ: tcp(7), for
/// unix(7) sockets: it has read it), and nothing that the peer sent is unread. To close the socket
/// does not reset the connection then. False if the kernel does not tell.
[[nodiscard]] bool is_delivered(int socket);

}  // namespace backtrail::server
