#pragma once
/// @file
/// A second listener on the recorded threads: whoever connects to a socket gets their records.
///
///     wish       from the client, if it has one: "pid N\n" or "tid N\n"
///     greeting   "BTTAIL2\n"
///     frame      pid (32 bits) | tid (32) | count (32) | news (32) | lost before this frame (64) |
///                count records; TailNews says what one without records tells
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

/// Never waits. A few megabytes of memory wait for each client; beyond them a client that does not
/// keep up gets its records from the spool, and without one, or when that is full, loses records
/// and is told how many: in front of the next one, or when it has taken all that waited.
class TailServer {
 public:
  /// Listens on a socket file that only this user may use; a stale one is replaced. The errno.
  static Result<std::unique_ptr<TailServer>> listen(const TailListening& options);
  ~TailServer();
  TailServer(const TailServer&) = delete;
  TailServer& operator=(const TailServer&) = delete;

  /// Readable when poll() has something to do.
  [[nodiscard]] int fd() const { return epoll_.get(); }
  /// Takes whoever waits to be let in, and sends what clients could not take before.
  /// @return Whether there are new clients: all threads are to be attached again.
  bool poll();
  [[nodiscard]] bool has_clients() const { return !connections_.empty(); }
  /// One of them is still there.
  [[nodiscard]] bool anybody_listens() const { return ticks_; }
  /// Every now and then, while somebody listens: what threads have done is to be handed on, though
  /// they go on and nobody asked.
  [[nodiscard]] bool take_due() { return std::exchange(due_, false); }
  /// Every client listens to this thread from now on, once. The hub may end before the server.
  void attach(ThreadId thread, decoder::TraceHub& hub);
  /// Tells of threads and processes that have ended, of which there are no hubs any more.
  void tell_ends(const std::function<bool(ThreadId)>& lives,
                 const std::function<bool(pid_t)>& runs);
  /// Gives clients what waits for them, and says that this was all. Waits for each of them while it
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
  std::vector<Connection> connections_;  ///< In the order of their names in epoll_.
};

}  // namespace backtrail::server
