// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A place where clients connect, one at a time.

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "server/transport/comm_spec.hpp"
#include "server/transport/connection.hpp"

namespace backtrail::server {

class Listener {
 public:
  /// Takes a client, or the reason why no more will come.
  using AcceptHandler = std::function<void(Explained<ClientChannel>)>;

  virtual ~Listener() = default;
  /// Prints where it listens, if a client needs to know.
  virtual void announce() const = 0;
  /// Waits for the next client, prints its name and passes it to `handler`. One accept at a time.
  /// The handler is not called after close().
  virtual void accept(AcceptHandler handler) = 0;
  /// Takes no more clients and removes a socket file. Idempotent; the destructor calls it.
  virtual void close() = 0;
  /// Returns true if the place cannot be listened on again once its client has left.
  [[nodiscard]] virtual bool ends_with_client() const = 0;
  /// Returns the descriptor to poll for the next client; -1 = none.
  [[nodiscard]] virtual int fd() const = 0;
  /// Returns the port in use; 0 = none.
  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

/// Binds at once, so that failures are known before a program starts. Programs do not inherit the
/// descriptors.
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_listener(boost::asio::io_context& io,
                                                                 const CommSpec& comm);

// Kinds of listener, for open_listener().
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_tcp_listener(boost::asio::io_context& io,
                                                                     const CommSpec& comm);
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_unix_listener(boost::asio::io_context& io,
                                                                      const CommSpec& comm);
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_stdio_listener(boost::asio::io_context& io);
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_device_listener(boost::asio::io_context& io,
                                                                        const CommSpec& comm);

/// Returns true if a socket should accept again after this error. Pauses first if descriptors or
/// memory have run out.
[[nodiscard]] bool accept_can_be_retried(const boost::system::error_code& error);

}  // namespace backtrail::server
