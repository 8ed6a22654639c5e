#pragma once
/// @file
/// Every record of every thread, compressed, in a file without a name: for `record --all`.

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "decoder/trace/trace_consumer.hpp"
#include "ptrace/core/core_notes.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "server/record/recorder.hpp"

namespace backtrail::server {

class TraceSpool final : public RecordObserver {
 public:
  /// @param folder     Where the file is made; it is gone when we are.
  /// @param max_bytes  Blocks beyond it push the oldest out, whosever they are.
  /// Throws std::system_error.
  TraceSpool(const std::string& folder, std::uint64_t max_bytes);
  ~TraceSpool() override;

  void on_thread(tracee::Thread& thread) override;
  void on_thread_end(tracee::Thread& thread) override;
  void on_end(pid_t pid, const tracee::StopEvent& end) override;

  /// Of the process's threads, also those that have ended. Flush the sources first. What they
  /// return borrows from this.
  [[nodiscard]] std::vector<tracee::CoreTrace> traces(pid_t pid);
  /// Blocks that the disk did not take.
  [[nodiscard]] std::uint64_t lost_blocks() const { return lost_blocks_; }

 private:
  class Listener;
  struct Block {
    pid_t tid = 0;
    std::uint64_t offset = 0;
    std::uint64_t bytes = 0;
    std::uint64_t records = 0;
  };
  void append(pid_t tid, std::uint64_t records, std::span<const std::uint8_t> block);
  void drop_oldest();
  Result<void> copy(pid_t tid, const tracee::CoreTrace::Sink& sink) const;

  tracee::UniqueFd fd_;
  std::uint64_t max_bytes_;
  std::uint64_t end_ = 0;
  std::uint64_t held_ = 0;
  std::uint64_t lost_blocks_ = 0;
  std::deque<Block> blocks_;  ///< Oldest first.
  std::map<pid_t, std::unique_ptr<Listener>> listeners_;
};

}  // namespace backtrail::server
