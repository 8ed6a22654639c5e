#pragma once
/// @file
/// Every record of every thread, compressed, in a file without a name: for `record --all`.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "ptrace/core/core_notes.hpp"
#include "server/record/recorder.hpp"
#include "server/record/spool_file.hpp"

namespace backtrail::server {

/// Where there is no room for all, the oldest records go: of the thread that has the most, so that
/// a thread that waits keeps the calls it waits in.
class TraceSpool final : public RecordObserver {
 public:
  /// @param folder     Where the file is made; it is gone when we are.
  /// @param max_bytes  What the blocks may take on disk.
  /// Throws std::runtime_error.
  TraceSpool(const std::string& folder, std::uint64_t max_bytes);
  ~TraceSpool() override;

  void on_thread(tracee::Thread& thread) override;
  void on_thread_end(tracee::Thread& thread) override;
  void on_exec_thread(tracee::Thread& thread) override;
  void on_thread_gone(tracee::ThreadId id) override;
  void on_end(pid_t pid, const tracee::StopEvent& end) override;

  /// Of the process's threads, also those that have ended. Flush the sources first. What they
  /// return borrows from this.
  [[nodiscard]] std::vector<tracee::CoreTrace> traces(pid_t pid);
  /// For a crash file that is being written from traces() and does not fit beside them: frees some
  /// of the disk, first of what the file has already, then of the oldest. False: nothing is left.
  bool make_room();
  /// The crash file is written, or is not going to be.
  void forget_what_was_handed_out();

 private:
  class Stream;
  struct Block {
    SpoolFile::Piece piece;
    std::uint64_t first = 0;
    std::uint64_t records = 0;
    std::uint64_t others = 0;
  };
  using Key = std::pair<pid_t, pid_t>;  ///< Process and thread.

  Stream& stream_of(const tracee::Thread& thread);
  /// Makes room for a block and puts it there; counts it as lost otherwise.
  void append(Stream& stream, Block block, std::span<const std::uint8_t> bytes);
  [[nodiscard]] bool is_too_much(std::uint64_t more) const;
  /// False: nobody has more than `least` blocks.
  bool drop_oldest(std::size_t least);

  SpoolFile file_;
  std::uint64_t max_bytes_;
  /// What the program and the crash file can still write, as far as that is ours to leave.
  std::uint64_t left_free_;
  /// Less is never given up for that.
  std::uint64_t least_held_;
  std::map<Key, std::unique_ptr<Stream>> streams_;
};

}  // namespace backtrail::server
