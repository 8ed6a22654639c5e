// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// State that packet handlers share: the target, the client's features, the selected threads,
/// pending replies.

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

/// Features that the client offered in qSupported. The server sends nothing that needs another one.
struct ClientFeatures {
  bool multiprocess = false;
  bool swbreak = false;
  bool hwbreak = false;
  bool fork_events = false;
  bool vfork_events = false;
  bool exec_events = false;
  bool no_resumed = false;
  bool x86_registers = false;   ///< The client reads descriptions of x86 registers.
  bool thread_options = false;  ///< The client knows QThreadOptions.
  bool error_message = false;   ///< The client shows the text of "E.text" for every packet.
};

/// A qSymbol conversation in progress.
struct SymbolQuery {
  pid_t pid = 0;
  std::vector<std::string> names;  ///< Names asked in this round.
  std::size_t next = 0;            ///< Index of the name whose answer is awaited.
  std::set<std::string> asked;     ///< Names asked in all rounds.
  std::map<std::string, TraceeAddr> found;
};

/// State of one connection. It lives as long as its Session; handlers borrow it.
struct SessionContext {
  SessionContext(Target& its_target, ServerState& its_state, PacketSink& its_sink)
      : target{its_target}, state{its_state}, sink{its_sink} {}

  Target& target;
  ServerState& state;
  PacketSink& sink;

  ClientFeatures client;
  SessionFate fate = SessionFate::kServe;
  bool no_ack = false;

  /// Thread that Hg selected. pid 0: none has been selected.
  ThreadId general;
  /// Threads that Hc selected, for the c and s packets.
  ThreadPattern continue_threads;
  /// Thread that the client last had reported as stopped, or asked about by T, which gdb does when
  /// its user selects a thread. pid 0: none.
  ThreadId in_use;

  /// All-stop: a resume is in progress, and its stop reply has not been sent.
  bool stop_reply_due = false;
  /// Non-stop: stops to report, oldest first. The client has been sent the first and has not yet
  /// acknowledged it.
  std::deque<tracee::StopEvent> notifications;

  DocumentCache documents;
  HostFiles files;
  std::optional<SymbolQuery> symbols;

  /// Returns the Hg thread, or the first thread if none was selected; nullopt if it is gone.
  [[nodiscard]] std::optional<ThreadId> selected_thread() const;
  /// Returns the thread that the client's user most likely works on, or the Hg thread if no packet
  /// tells; nullopt if it is gone. gdb moves Hg for its own reads of other threads (`info threads`,
  /// at the end of connecting) without moving it back.
  [[nodiscard]] std::optional<ThreadId> thread_in_use() const;
  /// Returns the process of the Hg thread, even if the thread itself is gone.
  [[nodiscard]] std::optional<pid_t> selected_process() const;
  /// Returns the oldest thread of the first process.
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
