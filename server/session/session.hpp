// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// One client's conversation: packets in, packets out, no I/O.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ptrace/tracee/launch_spec.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Receives a session's packets. A payload is complete, with its binary parts already escaped; the
/// sink adds framing, run-length coding and acknowledgement.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void send_packet(std::string payload) = 0;
  virtual void send_notification(std::string payload) = 0;
};

/// State that outlives one connection: the programs to start, the configuration, the server's own
/// options.
struct ServerState {
  bool extended = false;  ///< The client sent `!`, or the server runs with --multi.
  bool multi = false;     ///< --multi: the server stays when the last process is gone.
  tracee::LaunchSpec
      launch;  ///< Program that vRun and R start; its path is empty until one is known.
  std::set<std::string>
      disabled_packets;  ///< Packets of --disable-packet: vCont, T, Tthread, qC, ...
  std::uint64_t bts_size_bytes = 64UL * 1024;
  std::uint64_t pt_size_bytes = 16UL * 1024;
  ThreadId last_reported;  ///< Thread of the last stop reply; a new connection is told of it first.
  bool non_stop = false;   ///< QNonStop:1 is in force; kept across connections.
  /// Launched process that `D` detached from as the last one; the server waits for its end before
  /// it exits.
  std::optional<pid_t> detached_child;
};

/// The server's next move once the session's output has been sent.
enum class SessionFate : std::uint8_t {
  kServe,       ///< Continue the conversation.
  kDisconnect,  ///< Close this connection; the server decides whether to listen again.
  kExit,  ///< Close the connection and end the server (k without --multi, last process detached,
          ///< ...).
};

/// Dispatches packets and owns the state of one connection. No client bytes make it throw.
class Session {
 public:
  /// Borrows all three; they must outlive the session.
  Session(Target& target, ServerState& state, PacketSink& sink);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// Handles one packet. `payload` has a verified checksum; its binary parts are still escaped.
  void on_packet(std::string_view payload);
  /// Handles the raw byte 0x03 (Ctrl-C).
  void on_interrupt();
  /// Takes the target's events and reports them. Call whenever the target may have some.
  void on_target_events();
  /// Returns true once the client has sent QStartNoAckMode: neither side acknowledges packets.
  [[nodiscard]] bool no_ack() const;
  [[nodiscard]] SessionFate fate() const;
  /// Largest payload the server accepts, in bytes. PacketSize in qSupported is one less.
  static constexpr std::size_t kPacketSize = 0x20000;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace backtrail::server
