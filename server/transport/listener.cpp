// SPDX-License-Identifier: Apache-2.0
#include "server/transport/listener.hpp"

#include <cerrno>

#include <fcntl.h>

#include "server/transport/socket_accept.hpp"

namespace backtrail::server {

Explained<std::unique_ptr<Listener>> open_listener(boost::asio::io_context& io,
                                                   const CommSpec& comm) {
  switch (comm.kind) {
    case CommKind::kTcp:
      return open_tcp_listener(io, comm);
    case CommKind::kUnix:
      return open_unix_listener(io, comm);
    case CommKind::kDevice:
      return open_device_listener(io, comm);
    case CommKind::kStdio:
      break;
  }
  return open_stdio_listener(io);
}

bool accept_can_be_retried(const boost::system::error_code& error) {
  switch (error.value()) {
    case ECONNABORTED:
    case EINTR:
    case EPROTO:
    case EMFILE:
    case ENFILE:
    case ENOBUFS:
    case ENOMEM:
    case ENETDOWN:
    case EHOSTDOWN:
    case EHOSTUNREACH:
    case ENETUNREACH:
      return true;
    default:
      return false;
  }
}

void keep_from_programs(int fd) {
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
}

ClientChannel channel_from_socket(int fd) {
  ClientChannel channel;
  channel.input.reset(fd);
  channel.is_socket = true;
  return channel;
}

}  // namespace backtrail::server
