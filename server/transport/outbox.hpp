// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Queue of frames to send, and the frame that waits for an acknowledgement. No I/O.

#include <cstddef>
#include <deque>
#include <string>

namespace backtrail::server {

/// Keeps the order of frames. With acknowledgements on, one packet at a time is with the client.
/// The next follows when the client has sent '+' or another packet, which implies '+'. '-' sends
/// the packet again.
class Outbox {
 public:
  /// Queues a complete packet frame. @param acknowledged  The client will answer '+' or '-'.
  void add_packet(std::string frame, bool acknowledged);
  /// Queues a notification frame, which clients do not acknowledge.
  void add_notification(std::string frame);
  /// Adds '+' or '-', which goes out before frames that are held back.
  void add_acknowledgement(char c) { ready_ += c; }

  void on_ack();
  /// Sends the packet again, a limited number of times.
  void on_nack();
  /// Handles a packet of the client's, which implies '+'.
  void on_client_packet() { on_ack(); }
  /// Releases all frames: the connection is about to close.
  void release_all();

  /// Returns the bytes to send now and removes them.
  [[nodiscard]] std::string take_ready();
  [[nodiscard]] bool has_ready() const { return !ready_.empty(); }
  [[nodiscard]] std::size_t ready_bytes() const { return ready_.size(); }
  /// Returns the number of queued bytes, held back or not.
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
  std::string with_client_;  ///< Frame that waits for its acknowledgement; empty = none.
  int resends_ = 0;
};

}  // namespace backtrail::server
