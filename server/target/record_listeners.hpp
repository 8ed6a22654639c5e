// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Who gets the records of live threads besides the session: tail clients and branch stores.

#include <memory>

#include "ptrace/engine/engine.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "server/target/process_stores.hpp"
#include "server/target/tail_server.hpp"

namespace backtrail::server {

/// Decides which records reach them, and which threads keep every record for them. Must outlive the
/// engine's traces, which hold references to the listeners.
class RecordListeners {
 public:
  /// `engine` is borrowed; it may be constructed later.
  explicit RecordListeners(tracee::Engine& engine) : engine_{engine} {}
  RecordListeners(const RecordListeners&) = delete;
  RecordListeners& operator=(const RecordListeners&) = delete;
  ~RecordListeners() = default;

  /// Serves tail clients from now on. Errors: TailServer::listen()'s; errnos.
  Result<void> listen(const TailListening& options);
  /// Returns a descriptor that is readable while the engine or tail clients have news.
  [[nodiscard]] int event_fd() const { return events_ ? events_.get() : engine_.event_fd(); }
  /// Returns a descriptor that is readable while tail clients have news; -1 without tail clients.
  [[nodiscard]] int side_fd() const { return tails_ ? tails_->fd() : -1; }

  /// Returns true if serve_tails() or follow_stores() may have work without news.
  [[nodiscard]] bool need_service() const { return tails_ != nullptr || stores_.any(); }

  /// Lets clients in, hands records on, and forgets clients that have left.
  void serve_tails();
  /// Follows the stores of processes, and ends what none of them wants any more.
  void follow_stores();
  /// Hands the records so far to tail clients. A running thread whose buffer the kernel fills is
  /// skipped: the kernel's wake-up reads that buffer.
  void hand_on();
  /// Sends tail clients what waits for them. Call before the engine ends.
  void finish();

  /// Call when recording of a thread has begun at the client's request.
  void follow(ThreadId thread);
  /// Call when a thread is recorded without a request. It has not run since recording began.
  void follow_unasked(tracee::Thread& thread);
  /// Feeds stores with the thread's records from now on.
  /// @param every_record  They keep all of them; else as many as come by themselves.
  Result<void> feed_stores(ThreadId thread, bool every_record);
  /// Returns the store of a process.
  decoder::BranchStore& store_of(tracee::Process& process) { return stores_.of(process); }

 private:
  /// Attaches every tail client to every recorded thread.
  void attach_tails();
  /// Feeds the process's store, as it is configured, with this thread's records from now on.
  void follow_with_stores(ThreadId thread);
  [[nodiscard]] bool has_stores();
  /// Ends streaming, unless tail clients or stores still want every record.
  void end_streams();

  tracee::Engine& engine_;
  tracee::UniqueFd events_;  ///< Waits for the engine and for tail clients; none without these.
  std::unique_ptr<TailServer> tails_;
  bool tails_stream_ = false;   ///< Tail clients want every record.
  bool stores_stream_ = false;  ///< Stores want every record.
  ProcessStores stores_;
};

}  // namespace backtrail::server
