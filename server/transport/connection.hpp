#pragma once
/// @file
/// One client: bytes to packets and back, acknowledgements, bounded queues.

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "ptrace/os/unique_fd.hpp"
#include "server/session/session.hpp"

namespace backtrail::server {

/// The descriptors of an accepted client.
struct ClientChannel {
  tracee::UniqueFd input;
  tracee::UniqueFd output;  ///< None: `input` is for both directions.
  bool is_socket = false;
};

/// Who hears of what a client sends. Nothing is called after on_closed.
class ConnectionListener {
 public:
  virtual ~ConnectionListener() = default;
  virtual void on_packet(std::string_view payload) = 0;
  virtual void on_interrupt() = 0;
  /// The connection is over: the client went away, or finish() is done.
  virtual void on_closed() = 0;
};

/// Reads and writes without blocking; everything happens on the io_context's thread.
///
/// Memory is bounded whatever the client does: reading pauses while more than kPauseBytes of
/// answers wait to be sent, and the connection is closed when kAbortBytes do.
class Connection final : public PacketSink {
 public:
  static constexpr std::size_t kPauseBytes = std::size_t{1} << 20;
  static constexpr std::size_t kAbortBytes = std::size_t{64} << 20;
  /// How long finish() waits for the client to take the rest and close its side.
  static constexpr std::chrono::milliseconds kLinger{1000};

  /// The listener is borrowed and must outlive the connection.
  Connection(boost::asio::io_context& io, ClientChannel channel, ConnectionListener& listener);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  void send_packet(std::string payload) override;
  void send_notification(std::string payload) override;
  /// Packets sent from now on are not acknowledged, nor are the client's (QStartNoAckMode).
  void stop_acknowledging();
  /// Sends what is queued, then closes; on_closed follows, bounded by kLinger.
  void finish();

  /// What a poll has to watch to learn that this connection has something to do: a descriptor and
  /// EPOLLIN or 0; likewise for output and EPOLLOUT or 0.
  struct Interest {
    int input_fd = -1;
    bool input = false;
    int output_fd = -1;
    bool output = false;
  };
  [[nodiscard]] Interest interest() const;
  /// Packets and notifications sent so far.
  [[nodiscard]] std::uint64_t sent() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< Shared with the operations in flight.
};

}  // namespace backtrail::server
