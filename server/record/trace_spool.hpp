// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Keeps every record of every thread, compressed, in a nameless file: for `record --all`.

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

/// Without room for all, drops the oldest records of the thread that has the most, so that a
/// waiting thread keeps the calls it waits in.
class TraceSpool final : public RecordObserver {
 public:
  /// Makes the spool. Throws std::runtime_error.
  /// @param folder Folder of the file, which vanishes with this object.
  /// @param max_bytes Limit on the disk space of the blocks.
  TraceSpool(const std::string& folder, std::uint64_t max_bytes);
  ~TraceSpool() override;

  void on_thread(tracee::Thread& thread) override;
  void on_thread_end(tracee::Thread& thread) override;
  void on_exec_thread(tracee::Thread& thread) override;
  void on_thread_gone(tracee::ThreadId id) override;
  void on_end(pid_t pid, const tracee::StopEvent& end) override;

  /// Returns the traces of the process's threads, including ended ones. Flush the sources first.
  /// The traces borrow from this object.
  [[nodiscard]] std::vector<tracee::CoreTrace> traces(pid_t pid);
  /// Frees disk space for a crash file that is being written from traces(): first blocks that the
  /// file contains already, then the oldest. Returns false if nothing is left.
  bool make_room();
  /// Call when the crash file has been written or given up.
  void forget_what_was_handed_out();

 private:
  class Stream;
  struct Block {
    SpoolFile::Piece piece;
    std::uint64_t first = 0;
    std::uint64_t records = 0;
    std::uint64_t others = 0;
  };
  using Key = std::pair<pid_t, pid_t>;  ///< Pid and tid.

  Stream& stream_of(const tracee::Thread& thread);
  /// Makes room for a block and writes it; counts it as lost if that fails.
  void append(Stream& stream, Block block, std::span<const std::uint8_t> bytes);
  [[nodiscard]] bool is_too_much(std::uint64_t more) const;
  /// Drops a thread's oldest block. Returns false if no thread has more than `least` blocks.
  bool drop_oldest(std::size_t least);

  SpoolFile file_;
  std::uint64_t max_bytes_;
  /// Bytes that must remain free on the disk for the program and the crash file.
  std::uint64_t left_free_;
  /// At least this much is kept even if the disk gets full.
  std::uint64_t least_held_;
  std::map<Key, std::unique_ptr<Stream>> streams_;
};

}  // namespace backtrail::server
