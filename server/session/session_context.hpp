#pragma once
/// @file
/// What packet handlers share: the target, what the client said it understands, which threads are
/// selected, and what it is owed.

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "server/session/document_cache.hpp"
#include "server/session/host_files.hpp"
#include "server/session/reply.hpp"
#include "server/session/session.hpp"
#include "server/session/thread_pattern.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// What the client offered in qSupported. Nothing that it did not offer may be sent to it.
struct ClientFeatures {
  bool multiprocess = false;
  bool swbreak = false;
  bool hwbreak = false;
  bool fork_events = false;
  bool vfork_events = false;
  bool exec_events = false;
  bool no_resumed = false;
  bool error_message = false;  ///< Shows "E.text" for every packet.
};

/// A qSymbol conversation under way.
struct SymbolQuery {
  pid_t pid = 0;
  std::vector<std::string> names;  ///< What is asked in this round.
  std::size_t next = 0;            ///< Index of the name whose answer is awaited.
  std::set<std::string> asked;     ///< In all rounds.
  std::map<std::string, TraceeAddr> found;
};

/// One connection's state. Handlers get it by reference; it lives as long as the Session.
struct SessionContext {
  SessionContext(Target& its_target, ServerState& its_state, PacketSink& its_sink)
      : target{its_target}, state{its_state}, sink{its_sink} {}

  Target& target;
  ServerState& state;
  PacketSink& sink;

  ClientFeatures client;
  SessionFate fate = SessionFate::kServe;
  bool no_ack = false;

  /// Hg. pid 0 = none was selected yet.
  ThreadId general;
  /// Hc, for the old c and s packets.
  ThreadPattern continue_threads;

  /// All-stop: a resume's stop reply has not been sent yet.
  bool stop_reply_due = false;
  /// Non-stop: stops told or to be told; the first is with the client, unacknowledged.
  std::deque<tracee::StopEvent> notifications;

  DocumentCache documents;
  HostFiles files;
  std::optional<SymbolQuery> symbols;

  /// The Hg thread, or the first one when none was selected; nothing if it is gone.
  [[nodiscard]] std::optional<ThreadId> selected_thread() const;
  /// The process that Hg chose a thread of (the thread itself may be gone).
  [[nodiscard]] std::optional<pid_t> selected_process() const;
  /// Oldest thread of the first process.
  [[nodiscard]] std::optional<ThreadId> first_thread() const;
  [[nodiscard]] bool has_process() const { return !target.processes().empty(); }
  [[nodiscard]] bool has_process(pid_t pid) const;
  [[nodiscard]] rsp::ErrorForm error_form() const {
    return client.error_message ? rsp::ErrorForm::kText : rsp::ErrorForm::kNumber;
  }
  [[nodiscard]] bool disabled(const std::string& packet) const {
    return state.disabled_packets.contains(packet) ||
           (packet != "T" && state.disabled_packets.contains("threads"));
  }
  [[nodiscard]] std::string format(ThreadId thread) const {
    return format_thread(thread, client.multiprocess);
  }
};

}  // namespace backtrail::server
