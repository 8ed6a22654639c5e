#pragma once
/// @file
/// One connection to a tail server: what waits for it, what it wishes, what it lost.

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

/// What a frame without records says, beside how many were lost.
enum class TailNews : std::uint32_t {
  kNone = 0,
  kThreadEnded = 1,
  kProcessEnded = 2,  ///< Its tid is 0.
  kServerEnded = 3,   ///< Nothing follows, and nothing is missing. Pid and tid are 0.
};

/// Appends what a client gets of one thread.
void append_tail_frame(tracee::ThreadId thread, std::span<const decoder::Record> records,
                       std::uint64_t lost, TailNews news, std::vector<std::uint8_t>& out);

class TailClient {
 public:
  /// Keeps its socket in `epoll` (borrowed) for as long as it is open, under the number `name`.
  TailClient(tracee::UniqueFd socket, std::optional<tracee::DiskQueue> spool, int epoll,
             std::uint64_t name);
  TailClient(const TailClient&) = delete;
  TailClient& operator=(const TailClient&) = delete;
  ~TailClient() = default;

  /// Whether the frame found room. Frames without records always do.
  bool post(tracee::ThreadId thread, std::span<const decoder::Record> records, std::uint64_t lost,
            TailNews news = TailNews::kNone);
  /// The socket is ready, for these events of epoll.
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
  /// Of what the socket is to be ready for.
  void watch();
  [[nodiscard]] bool wants(tracee::ThreadId thread) const;
  [[nodiscard]] bool spooling() const { return spool_ && spool_->waiting() != 0; }
  [[nodiscard]] std::size_t waits() const { return waiting_.size() - sent_; }

  tracee::UniqueFd socket_;
  std::optional<tracee::DiskQueue> spool_;
  int epoll_;
  std::uint64_t name_;
  std::uint32_t watched_ = 0;
  std::vector<std::uint8_t> waiting_;  ///< Older than all that is spooled.
  std::size_t sent_ = 0;               ///< Of waiting_, from its front on.
  std::vector<std::uint8_t> frame_;
  std::string wish_;
  bool may_wish_ = true;
  std::optional<pid_t> pid_;
  std::optional<pid_t> tid_;
};

}  // namespace backtrail::server
