// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One client's connection: framing, acknowledgements, bounded queues.

#include <chrono>
#include <memory>
#include <string>

#include <boost/asio/io_context.hpp>

#include "ptrace/os/unique_fd.hpp"
#include "server/session/session.hpp"

namespace backtrail::server {

/// Descriptors of an accepted client.
struct ClientChannel {
  tracee::UniqueFd input;
  tracee::UniqueFd output;  ///< Not set if `input` serves both directions.
  bool is_socket = false;
};

/// Receives what a client sends. No call follows on_closed().
class ConnectionListener {
 public:
  virtual ~ConnectionListener() = default;
  virtual void on_packet(std::string_view payload) = 0;
  virtual void on_interrupt() = 0;
  /// The connection is over: the client has left, or has ended its input and has all answers, or
  /// finish() is done.
  virtual void on_closed() = 0;
};

/// Reads and writes without blocking, on the io_context's thread. The owner decides how to wait for
/// input: with start_reading(), or by itself.
///
/// Memory is bounded whatever the client does: reading pauses while more than kPauseBytes of
/// answers wait, and the connection closes when kAbortBytes do.
class Connection final : public PacketSink {
 public:
  static constexpr std::size_t kPauseBytes = std::size_t{1} << 20;
  static constexpr std::size_t kAbortBytes = std::size_t{64} << 20;
  /// Longest time that finish() waits for the client to close its side, once all is sent.
  static constexpr std::chrono::milliseconds kLinger{1000};
  /// Patience where other clients wait for this one's end.
  static constexpr std::chrono::milliseconds kPatience{30'000};

  /// Borrows the listener, which must outlive the connection.
  Connection(boost::asio::io_context& io, ClientChannel channel, ConnectionListener& listener);
  ~Connection() override;
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  void start();
  /// Lets the io_context wait for input, if any is wanted. Call before each wait by it.
  void start_reading();
  /// Returns true if the io_context has nothing to do for the connection but to wait for input. The
  /// owner may then poll the input itself, and call read_now() once it is readable.
  [[nodiscard]] bool only_wants_input() const;
  /// Handles the input that is there. Needs only_wants_input().
  void read_now();
  void send_packet(std::string payload) override;
  void send_notification(std::string payload) override;
  /// Stops acknowledging packets, and expects no acknowledgements of those sent from now on
  /// (QStartNoAckMode).
  void stop_acknowledging();
  /// Limits how long a client that is to get the rest, after finish() or the end of its input, may
  /// take nothing of it. Without a limit only its end, or that of this object, ends the wait.
  void set_patience(std::chrono::milliseconds patience);
  /// Sends the queue, then closes: within kLinger after the last byte is sent.
  void finish();

  /// Descriptors to poll, and whether to wait for input (EPOLLIN) and for output (EPOLLOUT).
  struct Interest {
    int input_fd = -1;
    bool input = false;
    int output_fd = -1;
    bool output = false;
  };
  [[nodiscard]] Interest interest() const;
  /// Returns how many packets and notifications were sent.
  [[nodiscard]] std::uint64_t sent() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;  ///< Shared with the operations in flight.
};

}  // namespace backtrail::server
