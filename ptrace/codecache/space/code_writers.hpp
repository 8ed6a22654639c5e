#pragma once
/// @file
/// Who may change code, or other memory, without a store that translated code makes: files that are
/// a process's memory (/proc/PID/mem), files that lie beneath code, and processes that share
/// memory.

#include <cstdint>
#include <ctime>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "arch/base/address.hpp"
#include "ptrace/os/open_file.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {
class Process;
}  // namespace backtrail::tracee

namespace backtrail::tracee::cache {

/// What is known to all processes of one tree, from the one that was started or attached to down:
/// descriptors are inherited and passed on among them. Borrows the processes.
class CodeWriters {
 public:
  void add(Process& process) { processes_.push_back(&process); }
  void remove(const Process& process) { std::erase(processes_, &process); }

  /// The process is about to run translated code: looks at what it has open already.
  void look_at_files_of(Process& process);
  /// Thread `tid` of a process has opened the descriptor. `truncated`: and has made the file empty,
  /// for which it need not be open for writing.
  void note_opened(pid_t tid, int fd, bool truncated);
  /// Whether a process of the tree may have the memory of one of them open for writing. From then
  /// on it stays so: every write to a file is looked at.
  [[nodiscard]] bool watches_writes() const { return watches_writes_; }
  /// A process of the tree has used the memory of another, for longer than until it executed a
  /// program.
  void note_shared_memory() { memory_was_shared_ = true; }
  /// Whether memory of the tree may have been written without a store of the threads it belongs to.
  [[nodiscard]] bool foreign_writes_possible() const {
    return watches_writes_ || memory_was_shared_;
  }
  /// [begin, end) was written in the memory of the process that has a thread of that id; nullopt:
  /// it may be any of them.
  void note_written(std::optional<pid_t> id, TraceeAddr begin, TraceeAddr end);
  /// The process of the tree that has a thread of that id; nullptr if none has.
  [[nodiscard]] Process* find(pid_t id) const;

  struct File {
    std::uint64_t inode = 0;
    std::string path;
  };
  /// A process whose mappings are looked at.
  struct Looked {
    pid_t pid = 0;
    const std::vector<MapEntry>& maps;               ///< All of them.
    std::optional<std::vector<OpenFile>> open = {};  ///< For writing, once that has been asked.
    /// Files that other processes may write, once that has been asked.
    std::optional<std::vector<File>> elsewhere = {};
  };
  /// Whether the file of a private mapping may change while it is mapped.
  /// @param is_new  It was not mapped when the process was looked at last.
  [[nodiscard]] bool may_change(const MapEntry& map, bool is_new, Looked& looked);
  /// Whether no process of the tree has the file of the mapping open for writing, or mapped shared.
  /// False where that cannot be told. Looks at all descriptors of all threads: not for often.
  [[nodiscard]] bool is_let_go(const MapEntry& map) const;

 private:
  static bool is_same(const File& file, const MapEntry& map);
  void note_file(const OpenFile& file);
  void watch_writes();
  /// Files that other processes have open for writing, or mapped shared.
  [[nodiscard]] std::vector<File> files_elsewhere(pid_t but) const;
  /// Whether the file may have been made by a process of the tree, which is not looked at then.
  [[nodiscard]] bool is_young(const MapEntry& map, pid_t pid) const;

  std::vector<Process*> processes_;
  std::vector<File> changing_;  ///< Lie beneath code, and are or were open for writing.
  std::deque<File> opened_;     ///< For writing, lately; beneath nobody's code by then.
  std::time_t begin_ = std::time(nullptr);
  bool watches_writes_ = false;
  bool memory_was_shared_ = false;
};

/// The id, as we see it, of the thread or process that a thread names so in a system call; 0: none
/// that we know. PID namespaces have numbers of their own.
[[nodiscard]] pid_t id_named_by(pid_t tid, std::uint64_t id);

}  // namespace backtrail::tracee::cache
