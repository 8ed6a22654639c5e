// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Common code of TCP and Unix sockets for arriving clients.

#include <chrono>
#include <memory>
#include <utility>

#include <boost/asio/steady_timer.hpp>

#include <fcntl.h>

#include "arch/base/log.hpp"
#include "server/transport/listener.hpp"

namespace backtrail::server {

/// Sets close-on-exec, so that debugged programs do not inherit the descriptor.
void keep_from_programs(int fd);

/// Makes a channel that owns the socket.
[[nodiscard]] ClientChannel channel_from_socket(int fd);

template <typename Acceptor>
int listening_fd(Acceptor& acceptor) {
  return acceptor.is_open() ? acceptor.native_handle() : -1;
}

/// Accepts one client, and retries after passing failures. `greet(socket)` sets options and prints
/// the client's name.
template <typename Acceptor, typename Greet>
void accept_client(Acceptor& acceptor, Listener::AcceptHandler handler, Greet greet) {
  using Socket = typename Acceptor::protocol_type::socket;
  acceptor.async_accept([&acceptor, handler = std::move(handler), greet = std::move(greet)](
                            const boost::system::error_code& error, Socket socket) mutable {
    if (error == boost::asio::error::operation_aborted) return;
    if (!error) {
      keep_from_programs(socket.native_handle());
      greet(socket);
      handler(channel_from_socket(socket.release()));
      return;
    }
    if (!accept_can_be_retried(error)) {
      handler(explain("no client can connect any more: " + error.message()));
      return;
    }
    log::server().warn("op=accept {}", error.message());
    auto timer = std::make_shared<boost::asio::steady_timer>(acceptor.get_executor(),
                                                             std::chrono::milliseconds{200});
    timer->async_wait([timer, &acceptor, handler = std::move(handler),
                       greet = std::move(greet)](const boost::system::error_code&) mutable {
      if (acceptor.is_open()) accept_client(acceptor, std::move(handler), std::move(greet));
    });
  });
}

}  // namespace backtrail::server
