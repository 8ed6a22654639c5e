// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tracks who may change code, or other memory, without a store made by translated code: files that
/// are a process's memory (/proc/PID/mem), files that are mapped as code, and processes that share
/// memory.

#include <cstdint>
#include <ctime>
#include <deque>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "arch/base/address.hpp"
#include "ptrace/codecache/syscalls/own_memory.hpp"
#include "ptrace/os/open_file.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// Shared by all processes of one tree, whose root was launched or attached to: descriptors are
/// inherited and passed on among them. Borrows the processes.
class CodeWriters {
 public:
  void add(Process& process) { processes_.push_back(&process); }
  void remove(const Process& process);

  /// Call when the new process `child` of the tree uses the memory of `parent`.
  void note_shared_memory(Process& parent, Process& child);
  /// Call when the process has memory of its own, after an exec.
  void note_own_memory(const Process& process);
  /// Returns the processes of the tree that use the memory of the process, itself among them.
  [[nodiscard]] std::vector<Process*> users_of_memory_of(Process& process) const;
  /// Returns true if another process of the tree uses the memory of the process.
  [[nodiscard]] bool shares_memory(const Process& process) const;
  /// Call before the process stops using memory in which the recorder leaves these ranges mapped:
  /// the other users keep them until one of them unmaps them.
  void note_left_memory(const Process& process, std::span<const MemoryRange> ranges);
  /// Returns what the recorder has left mapped in the memory of the process, unused.
  [[nodiscard]] std::span<const MemoryRange> left_memory(const Process& process) const;
  /// As left_memory(), and forgets it: the caller unmaps it.
  std::vector<MemoryRange> take_left_memory(const Process& process);

  /// Looks at the files that the process has open for writing, and returns them; nullopt if that
  /// makes no difference any more. Call before the process runs translated code.
  std::optional<std::vector<OpenFile>> look_at_files_of(Process& process);
  /// Call when thread `tid` has opened the descriptor. `truncated`: the call also truncated the
  /// file, for which it need not be open for writing.
  void note_opened(pid_t tid, int fd, bool truncated);
  /// Returns true once a process of the tree may have had the memory of one of them open for
  /// writing. From then on every write to a file is examined.
  [[nodiscard]] bool watches_writes() const { return watches_writes_; }
  /// Call when a process of the tree shares another's memory for longer than a vfork's child does,
  /// or has written another's memory.
  void note_foreign_writes() { foreign_writes_ = true; }
  /// Call when a thread of the tree may make calls that nobody looks at, now or later: it was
  /// detached from, or a call has an unknown form.
  void note_unseen_calls() { foreign_writes_ = true; }
  /// Call when a thread runs that is not recorded, or by a source that does not see calls.
  void note_unseen_run() { unseen_run_ = true; }
  /// Returns true if a thread has run that made calls that nobody looked at.
  [[nodiscard]] bool has_unseen_run() const { return unseen_run_; }
  /// Call while all threads of the tree are stopped and nothing was recorded so far: what happened
  /// before does not matter.
  void begin_history();
  /// Returns false if it is certain that all memory of the tree was written by stores and calls of
  /// its own threads alone, as far as its processes are concerned.
  [[nodiscard]] bool foreign_writes_possible() const {
    return watches_writes_ || foreign_writes_ || unseen_run_;
  }
  /// Call when [begin, end) was written in the memory of the process that has thread `id`; nullopt:
  /// in any process.
  void note_written(std::optional<pid_t> id, TraceeAddr begin, TraceeAddr end);
  /// Returns the process of the tree that has this thread; null if none has.
  [[nodiscard]] Process* find(pid_t id) const;

  struct File {
    std::uint64_t inode = 0;
    std::string path;
  };
  /// A process whose mappings are being examined.
  struct Looked {
    pid_t pid = 0;
    const std::vector<MapEntry>& maps;               ///< All of its mappings.
    std::optional<std::vector<OpenFile>> open = {};  ///< Files open for writing, once asked for.
    /// Files that other processes may write, once asked for.
    std::optional<std::vector<File>> elsewhere = {};
  };
  /// Returns true if the file of a private mapping may change while it is mapped.
  /// @param is_new The mapping was not there when the process was last examined.
  [[nodiscard]] bool may_change(const MapEntry& map, bool is_new, Looked& looked);
  /// Returns true if no process of the tree has the mapping's file open for writing or mapped
  /// shared. False if unknown. Looks at all descriptors of all threads, so call it rarely.
  [[nodiscard]] bool is_let_go(const MapEntry& map) const;

 private:
  /// Memory that several processes use, or in which another one's has been left.
  struct SharedMemory {
    std::vector<Process*> users;
    std::vector<MemoryRange> left;
    [[nodiscard]] bool is_used_by(const Process& process) const;
  };
  /// Returns the memory that the process uses; null if nothing is known of it.
  [[nodiscard]] const SharedMemory* shared_by(const Process& process) const;
  [[nodiscard]] SharedMemory* shared_by(const Process& process);
  void forget_what_is_not_shared();
  static bool is_same(const File& file, const MapEntry& map);
  void note_file(const OpenFile& file);
  /// Returns true if the file is the recorder's memory in a process of the tree.
  [[nodiscard]] bool is_recorders_memory(const OpenFile& file) const;
  /// Call when a process of the tree may write the recorder's memory through a file.
  void note_recorders_memory();
  void watch_writes();
  /// Returns the files that processes other than `but` have open for writing or mapped shared.
  [[nodiscard]] std::vector<File> files_elsewhere(pid_t but) const;
  /// Returns true if the file may have been made since recording began; the creation of files is
  /// not tracked.
  [[nodiscard]] bool is_young(const MapEntry& map, pid_t pid) const;

  std::vector<Process*> processes_;
  std::vector<SharedMemory> shared_;
  std::vector<File> changing_;  ///< Files that are mapped as code and are or were open for writing.
  std::deque<File> opened_;  ///< Files opened for writing lately that were not mapped as code then.
  std::time_t begin_ = std::time(nullptr);
  bool watches_writes_ = false;
  bool foreign_writes_ = false;  ///< Memory may have been written from elsewhere.
  bool unseen_run_ = false;      ///< A thread made calls that nobody looked at.
};

/// Translates an id that a thread names in a system call to the server's pid namespace; 0 if
/// unknown.
[[nodiscard]] pid_t id_named_by(pid_t tid, std::uint64_t id);

}  // namespace backtrail::tracee::cache
