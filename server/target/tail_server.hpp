// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Serves the records of recorded threads to every client of a socket.
///
///     wish       from the client, if it has one: "pid N\n" or "tid N\n"
///     greeting   "BTTAIL2\n"
///     frame      pid (32 bits) | tid (32) | count (32) | news (32) | lost before this frame (64) |
///                count records; TailNews says what a frame without records means
///     record     from (64) | to (64) | kind (8) | reason (8) | bound (8) | 0 (8) | payload (32)

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "decoder/trace/trace_hub.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "server/target/tail_client.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

inline constexpr std::string_view kTailGreeting = "BTTAIL2\n";
inline constexpr std::size_t kTailFrameBytes = 24;
inline constexpr std::size_t kTailRecordBytes = 24;

/// Never waits. Buffers a few megabytes for each client. A client slower than that gets
/// its records from the spool. Without a spool, or when it is full, the client loses records; a
/// count of them precedes its next record, or follows once the client has taken all that waited.
class TailServer {
 public:
  /// Listens on a socket file that only this user may use; replaces a stale one. Error: the errno.
  static Result<std::unique_ptr<TailServer>> listen(const TailListening& options);
  ~TailServer();
  TailServer(const TailServer&) = delete;
  TailServer& operator=(const TailServer&) = delete;

  /// Returns a descriptor that is readable while poll() has work.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  /// Accepts waiting clients, and sends what clients could not take before.
  /// @return Whether there are new clients; attach() every thread again then.
  bool poll();
  [[nodiscard]] bool has_clients() const { return !connections_.empty(); }
  /// Returns true if a client is still connected.
  [[nodiscard]] bool anybody_listens() const { return ticks_; }
  /// Returns true about every 20 ms while a client is connected: running threads' records must be
  /// handed on although nobody asked.
  [[nodiscard]] bool take_due() { return std::exchange(due_, false); }
  /// Makes every client listen to this thread from now on; attaching twice has no effect. The hub
  /// may end before the server.
  void attach(ThreadId thread, decoder::TraceHub& hub);
  /// Reports threads and processes that have ended to the clients. Their hubs no longer exist.
  void tell_ends(const std::function<bool(ThreadId)>& lives,
                 const std::function<bool(pid_t)>& runs);
  /// Sends the clients what waits for them and a final frame. Waits for a client for as long as it
  /// takes something within `patience_ms`.
  void finish(int patience_ms);

 private:
  class Listener;
  struct Connection {
    std::unique_ptr<TailClient> client;
    std::map<std::pair<ThreadId, decoder::TraceHub*>, std::unique_ptr<Listener>> listeners;
  };

  TailServer(tracee::UniqueFd socket, tracee::UniqueFd epoll, tracee::UniqueFd clock,
             TailListening options);
  bool let_in();
  void set_clock();
  static void tell_losses(Connection& connection);

  tracee::UniqueFd socket_;
  tracee::UniqueFd epoll_;
  tracee::UniqueFd clock_;
  bool ticks_ = false;
  bool due_ = false;
  TailListening options_;
  std::vector<Connection> connections_;  ///< Index: the connection's number in epoll_.
};

}  // namespace backtrail::server
