// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One connection to a tail server: its queue, its wish, its losses.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "decoder/trace/record.hpp"
#include "ptrace/os/disk_queue.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "ptrace/tracee/thread_id.hpp"

namespace backtrail::server {

/// Message of a frame without records, besides the loss count.
enum class TailNews : std::uint32_t {
  kNone = 0,
  kThreadEnded = 1,
  kProcessEnded = 2,  ///< The frame's tid is 0.
  kServerEnded = 3,   ///< The stream ends here and is complete. Pid and tid are 0.
};

/// Appends one thread's frame to `out`.
void append_tail_frame(tracee::ThreadId thread, std::span<const decoder::Record> records,
                       std::uint64_t lost, TailNews news, std::vector<std::uint8_t>& out);

class TailClient {
 public:
  /// Registers the socket in `epoll` (borrowed) under the number `name` for as long as it is open.
  TailClient(tracee::UniqueFd socket, std::optional<tracee::DiskQueue> spool, int epoll,
             std::uint64_t name);
  TailClient(const TailClient&) = delete;
  TailClient& operator=(const TailClient&) = delete;
  ~TailClient() = default;

  /// Queues a frame. Returns false if there is no room. Frames without records always find room.
  bool post(tracee::ThreadId thread, std::span<const decoder::Record> records, std::uint64_t lost,
            TailNews news = TailNews::kNone);
  /// Handles epoll's `events` on the socket.
  void serve(std::uint32_t events);
  /// Sends what waits, for as long as the client takes something within `patience_ms`.
  void drain(int patience_ms);

  [[nodiscard]] bool gone() const { return !socket_; }
  [[nodiscard]] bool has_all() const { return waits() == 0 && !spooling(); }

 private:
  void send();
  void send_waiting();
  bool take_from_spool();
  void read_wish();
  void grant(std::string_view wish);
  void close();
  /// Tells epoll which events of the socket to report.
  void watch();
  [[nodiscard]] bool wants(tracee::ThreadId thread) const;
  [[nodiscard]] bool spooling() const { return spool_ && spool_->waiting() != 0; }
  [[nodiscard]] std::size_t waits() const { return waiting_.size() - sent_; }

  tracee::UniqueFd socket_;
  std::optional<tracee::DiskQueue> spool_;
  int epoll_;
  std::uint64_t name_;
  std::uint32_t watched_ = 0;
  std::vector<std::uint8_t> waiting_;  ///< Bytes to send, older than those in the spool.
  std::size_t sent_ = 0;               ///< Bytes at the start of waiting_ already sent.
  std::vector<std::uint8_t> frame_;
  std::string wish_;
  bool may_wish_ = true;
  std::optional<pid_t> pid_;
  std::optional<pid_t> tid_;
};

}  // namespace backtrail::server
