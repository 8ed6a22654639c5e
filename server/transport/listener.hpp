#pragma once
/// @file
/// A place where clients arrive, one at a time.

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "server/transport/comm_spec.hpp"
#include "server/transport/connection.hpp"

namespace backtrail::server {

class Listener {
 public:
  /// A client, or why no more will come.
  using AcceptHandler = std::function<void(Explained<ClientChannel>)>;

  virtual ~Listener() = default;
  /// Prints where it listens, if a client has to know.
  virtual void announce() const = 0;
  /// Waits for the next client, prints who it is and hands it over. Once at a time. The handler is
  /// not called after close().
  virtual void accept(AcceptHandler handler) = 0;
  /// Takes no more clients; a socket file is removed. Idempotent, done on destruction.
  virtual void close() = 0;
  /// There is nothing to listen at again once the client has closed its side.
  [[nodiscard]] virtual bool ends_with_client() const = 0;
  /// What a poll has to watch for the next client; -1 = nothing.
  [[nodiscard]] virtual int fd() const = 0;
  /// The port in use; 0 = none.
  [[nodiscard]] virtual std::uint16_t port() const = 0;
};

/// Binds at once, so that what cannot work is known before a program is started. Descriptors are
/// not inherited by programs.
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_listener(boost::asio::io_context& io,
                                                                 const CommSpec& comm);

// The kinds; used by open_listener.
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_tcp_listener(boost::asio::io_context& io,
                                                                     const CommSpec& comm);
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_unix_listener(boost::asio::io_context& io,
                                                                      const CommSpec& comm);
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_stdio_listener(boost::asio::io_context& io);
[[nodiscard]] Explained<std::unique_ptr<Listener>> open_device_listener(boost::asio::io_context& io,
                                                                        const CommSpec& comm);

/// How both kinds of socket go on after a failed accept: true = try again, after a pause when
/// descriptors or memory have run out.
[[nodiscard]] bool accept_can_be_retried(const boost::system::error_code& error);

}  // namespace backtrail::server
