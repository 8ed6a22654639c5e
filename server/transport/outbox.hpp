#pragma once
/// @file
/// What is to be sent, in order, and what waits for an acknowledgement. No I/O.

#include <cstddef>
#include <deque>
#include <string>

namespace backtrail::server {

/// While acknowledgements are on, one packet at a time is with the client; the next one follows
/// when the client has said '+', or has sent its next packet (which means the same). '-' sends the
/// packet again. Everything keeps its order.
class Outbox {
 public:
  /// A whole packet frame. @param acknowledged  The client will answer '+' or '-'.
  void add_packet(std::string frame, bool acknowledged);
  /// A notification frame; clients do not acknowledge it.
  void add_notification(std::string frame);
  /// '+' or '-': goes before frames that are still held back.
  void add_acknowledgement(char c) { ready_ += c; }

  void on_ack();
  /// The packet goes out again, a bounded number of times.
  void on_nack();
  /// The client has sent a packet of its own.
  void on_client_packet() { on_ack(); }
  /// Stops holding back: the connection is about to be closed.
  void release_all();

  /// The bytes to send now; they are the caller's from then on.
  [[nodiscard]] std::string take_ready();
  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }
  [[nodiscard]] std::size_t ready_bytes() const { return ready_.size(); }
  /// Bytes not taken yet, held back or not.
  [[nodiscard]] std::size_t size_bytes() const { return ready_.size() + held_bytes_; }

 private:
  struct Item {
    std::string frame;
    bool acknowledged = false;
  };

  void add(Item item);
  void advance();

  std::string ready_;
  std::deque<Item> held_;
  std::size_t held_bytes_ = 0;
  std::string with_client_;  ///< The frame whose acknowledgement is awaited; empty = none.
  int resends_ = 0;
};

}  // namespace backtrail::server
