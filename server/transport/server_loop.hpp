#pragma once
/// @file
/// The server's one thread at work: clients, the target's events, the end.
///
/// Entry type: ServerLoop. It knows nothing of packets' meaning. The thread that runs it is the one
/// that traces; nothing here starts another.

#include <cstdint>
#include <memory>
#include <string>

#include "server/session/session.hpp"
#include "server/target/target.hpp"
#include "server/transport/comm_spec.hpp"
#include "server/transport/conversation.hpp"

namespace backtrail::server {

struct LoopOptions {
  bool once = false;  ///< One client; the end of its connection is the end of the server.
  std::string server_name = "Backtrail";  ///< In the line that says a connection has ended.
};

class ServerLoop {
 public:
  /// Binds and listens; a client that comes early waits. Target and state are borrowed and must
  /// outlive the loop. Throws std::system_error when descriptors run out.
  static Explained<std::unique_ptr<ServerLoop>> open(const CommSpec& comm, Target& target,
                                                     ServerState& state,
                                                     ConversationFactory make_conversation,
                                                     LoopOptions options);
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  /// Serves until a session asks for the end, the only client of --once or stdio has gone, the last
  /// process of a server that is not extended has gone with its client, or SIGTERM, SIGINT or
  /// SIGHUP arrives. Then kills what was started and lets go of what was attached to.
  /// @return The exit status: 0; 1 if listening failed; 128 + the signal's number.
  [[nodiscard]] int run();

  /// The TCP port in use; 0 = none.
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct Impl;
  explicit ServerLoop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Kills the processes that were started, detaches from the others, and says so on stderr.
void leave_processes(Target& target);

}  // namespace backtrail::server
