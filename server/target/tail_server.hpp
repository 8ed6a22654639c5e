#pragma once
/// @file
/// A second listener on the recorded threads: whoever connects to a socket gets their records.
///
///     wish       from the client, if it has one: "pid N\n" or "tid N\n"
///     greeting   "BTTAIL2\n"
///     frame      pid (32 bits) | tid (32) | count (32) | 0 (32) | lost before this frame (64) |
///                count records
///     record     from (64) | to (64) | kind (8) | reason (8) | bound (8) | 0 (8) | payload (32)

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "decoder/trace/trace_hub.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

inline constexpr std::string_view kTailGreeting = "BTTAIL2\n";
inline constexpr std::size_t kTailFrameBytes = 24;
inline constexpr std::size_t kTailRecordBytes = 24;

/// Never waits. A few megabytes of memory wait for each client; beyond them a client that does not
/// keep up gets its records from the spool, and without one, or when that is full, loses records
/// and is told how many.
class TailServer {
 public:
  /// Listens on a socket file that only this user may use; a stale one is replaced. The errno.
  static Result<std::unique_ptr<TailServer>> listen(const TailListening& options);
  ~TailServer();
  TailServer(const TailServer&) = delete;
  TailServer& operator=(const TailServer&) = delete;

  /// Takes whoever waits to be let in, and sends what clients could not take before.
  /// @return Whether there are new clients: all threads are to be attached again.
  bool poll();
  [[nodiscard]] bool has_clients() const { return !clients_.empty(); }
  /// Every client listens to this thread from now on, once. The hub may end before the server.
  void attach(ThreadId thread, decoder::TraceHub& hub);

 private:
  class Client;
  class Listener;

  TailServer(tracee::UniqueFd socket, TailListening options);

  tracee::UniqueFd socket_;
  TailListening options_;
  std::vector<std::unique_ptr<Client>> clients_;
};

}  // namespace backtrail::server
