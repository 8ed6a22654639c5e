#pragma once
/// @file
/// One gdb's conversation, without any I/O: packets in, packets out.

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "ptrace/tracee/launch_spec.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Where a session's packets go. Payloads are complete and escaped already where they are binary;
/// the sink adds framing, run-length coding and acknowledgement.
class PacketSink {
 public:
  virtual ~PacketSink() = default;
  virtual void send_packet(std::string payload) = 0;
  virtual void send_notification(std::string payload) = 0;
};

/// What outlives one connection: how to start programs, what is configured, how the server was
/// started.
struct ServerState {
  bool extended = false;                   ///< `!` was sent, or --multi.
  bool multi = false;                      ///< --multi: stay when the last process is gone.
  tracee::LaunchSpec launch;               ///< For vRun and R; program empty = none known yet.
  std::set<std::string> disabled_packets;  ///< --disable-packet: vCont, T, Tthread, qC, ...
  std::uint64_t bts_size_bytes = 64UL * 1024;
  std::uint64_t pt_size_bytes = 16UL * 1024;
  ThreadId last_reported;  ///< In the last stop reply; a new connection hears of it first.
  bool non_stop = false;   ///< QNonStop:1; stays across connections.
  /// A started process that `D` let go as the last one: the server waits for it before it exits.
  std::optional<pid_t> detached_child;
};

/// What the server is to do once the session's output so far has been sent.
enum class SessionFate : std::uint8_t {
  kServe,       ///< Go on.
  kDisconnect,  ///< Close this connection; the server decides whether to listen again.
  kExit,        ///< Close it and end the server (k without --multi, last process detached, ...).
};

/// Packet dispatch and all state that belongs to one connection. Never throws on client bytes.
class Session {
 public:
  /// All three are borrowed and must outlive the session.
  Session(Target& target, ServerState& state, PacketSink& sink);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  /// A whole packet's payload, checksum verified, still escaped where it is binary.
  void on_packet(std::string_view payload);
  /// The raw byte 0x03.
  void on_interrupt();
  /// To be called whenever the target may have events: takes them and reports them.
  void on_target_events();
  /// Like on_packet for a frame whose checksum was wrong in no-ack mode (it is only logged).
  [[nodiscard]] bool no_ack() const;
  [[nodiscard]] SessionFate fate() const;
  /// Largest payload we accept, as told to gdb (PacketSize).
  static constexpr std::size_t kPacketSize = 0x20000;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace backtrail::server
