// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Whether a socket may be closed without loss.

namespace backtrail::server {

/// Returns true if the peer has everything that was written to the socket (SIOCOUTQ: tcp(7), for
/// unix(7) sockets: it has read it), and nothing that the peer sent is unread. To close the socket
/// does not reset the connection then. False if the kernel does not tell.
[[nodiscard]] bool is_delivered(int socket);

/// Returns how many bytes the kernel still has to bring to the peer's. Input that comes after
/// close() resets the connection and discards them. 0 for other sockets than TCP, whose peers can
/// read what was written in any case.
[[nodiscard]] int bytes_on_their_way(int socket);

}  // namespace backtrail::server
