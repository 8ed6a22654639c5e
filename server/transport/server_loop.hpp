// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server's event loop: clients, the target's events, the end.
///
/// Entry type: ServerLoop. It does not interpret packets. Its thread is the tracing thread; it
/// starts no other.

#include <cstdint>
#include <memory>
#include <string>

#include "server/session/session.hpp"
#include "server/target/target.hpp"
#include "server/transport/comm_spec.hpp"
#include "server/transport/conversation.hpp"

namespace backtrail::server {

struct LoopOptions {
  bool once = false;                      ///< Serve one client; end with its connection.
  std::string server_name = "Backtrail";  ///< Name in the notice that a connection has ended.
};

class ServerLoop {
 public:
  /// Binds and listens; an early client waits. Borrows target and state, which must outlive the
  /// loop. Throws std::system_error when descriptors run out.
  static Explained<std::unique_ptr<ServerLoop>> open(const CommSpec& comm, Target& target,
                                                     ServerState& state,
                                                     ConversationFactory make_conversation,
                                                     LoopOptions options);
  ~ServerLoop();
  ServerLoop(const ServerLoop&) = delete;
  ServerLoop& operator=(const ServerLoop&) = delete;

  /// Serves until a session asks for the end, the only client of --once or stdio has left, the last
  /// process of a non-extended server is gone with its client, or SIGTERM, SIGINT or SIGHUP
  /// arrives. Then kills launched processes and detaches from the others.
  /// @return The exit status: 0; 1 if listening failed; 128 + the signal's number.
  [[nodiscard]] int run();

  /// Returns the TCP port in use; 0 = none.
  [[nodiscard]] std::uint16_t port() const;

 private:
  struct Impl;
  explicit ServerLoop(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

/// Kills launched processes, detaches from the others, and prints both on stderr.
void leave_processes(Target& target);

}  // namespace backtrail::server
