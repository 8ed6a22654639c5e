// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads /proc. Every function copes with processes that vanish meanwhile: ENOENT and ESRCH under a
/// process's folder become TraceErrc::kTraceeGone.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "arch/base/result.hpp"
#include "arch/isa.hpp"

namespace backtrail::tracee {

/// Fields of /proc/PID/stat. Source: proc(5).
struct ProcStat {
  pid_t pid = 0;
  std::string comm;
  char state = '?';  ///< R S D Z T t X I ...
  pid_t ppid = 0;
  pid_t pgrp = 0;
  pid_t session = 0;
  std::uint64_t flags = 0;  ///< PF_*.
  long threads = 0;
  std::uint64_t start_time =
      0;               ///< Clock ticks after boot; with the pid it names one process for ever.
  int processor = -1;  ///< CPU last run on.

  [[nodiscard]] bool zombie() const { return state == 'Z' || state == 'X'; }
  [[nodiscard]] bool kernel_thread() const { return (flags & 0x00200000U) != 0; }  // PF_KTHREAD
};

/// Fields of /proc/PID/status.
struct ProcStatus {
  std::string name;
  char state = '?';
  pid_t tgid = 0;
  pid_t ppid = 0;
  pid_t tracer_pid = 0;
  uid_t real_uid = 0;
  uid_t effective_uid = 0;
  uid_t saved_uid = 0;
  gid_t real_gid = 0;
  gid_t effective_gid = 0;
  int namespace_depth = 1;  ///< Number of pid namespaces that show it, from the server's inwards
                            ///< (NSpid).
  pid_t own_id = 0;         ///< Its own pid: that of the innermost namespace.
  std::uint64_t signals_blocked = 0;  ///< Bit n-1 = signal n.
  std::uint64_t signals_ignored = 0;
  std::uint64_t signals_caught = 0;
  std::uint64_t effective_capabilities = 0;
  bool no_new_privileges = false;
  int seccomp = 0;                     ///< 0 none, 1 strict, 2 filter.
  std::optional<int> seccomp_filters;  ///< Number of filters; nullopt before Linux 5.9.

  /// Returns true if the calling thread traces it.
  [[nodiscard]] bool traced_here() const { return tracer_pid == ::gettid(); }
};

/// A line of /proc/PID/maps.
struct MapEntry {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
  bool read = false;
  bool write = false;
  bool execute = false;
  bool shared = false;
  std::uint64_t offset = 0;  ///< In bytes.
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;
  std::uint64_t inode = 0;
  std::string path;  ///< May be "[stack]" or similar, end in " (deleted)", or be empty.
};

/// Pure parsers. They return nullopt if the text does not have the documented form.
[[nodiscard]] std::optional<ProcStat> parse_stat(std::string_view text);
[[nodiscard]] std::optional<ProcStatus> parse_status(std::string_view text);
[[nodiscard]] std::optional<MapEntry> parse_maps_line(std::string_view line);
/// Skips lines of unknown form.
[[nodiscard]] std::vector<MapEntry> parse_maps(std::string_view text);
/// Returns the ISA given by the first 20 bytes of an ELF file; nullopt if it is not ELF or for
/// another CPU family.
[[nodiscard]] std::optional<arch::Isa> elf_isa(std::string_view header);
/// Returns the ISA of a user code segment selector: 0x23 is 32-bit code, 0x33 is 64-bit code;
/// nullopt for others.
[[nodiscard]] std::optional<arch::Isa> isa_from_code_segment(std::uint64_t cs);

/// A mounted procfs, or a folder that looks like one.
class ProcFs {
 public:
  explicit ProcFs(std::string root = "/proc") : root_{std::move(root)} {}

  [[nodiscard]] const std::string& root() const { return root_; }
  /// "ROOT/PID/name"; works for thread ids too.
  [[nodiscard]] std::string path(pid_t id, std::string_view name) const;

  /// Reads a whole small file below the root ("sys/kernel/yama/ptrace_scope"). Errors: the errno.
  Result<std::string> read(std::string_view name) const;
  /// Reads a whole file below a process's or thread's folder.
  Result<std::string> read(pid_t id, std::string_view name) const;

  Result<ProcStat> stat(pid_t id) const;
  /// Returns facts of one thread only; stat() adds up those of all threads for a process's id.
  Result<ProcStat> task_stat(pid_t pid, pid_t tid) const;
  Result<ProcStatus> status(pid_t id) const;
  /// Returns the number of the system call that the thread sleeps in; nullopt if it runs, waits for
  /// a CPU, or sleeps elsewhere, for memory for example. Needs the right to trace it.
  Result<std::optional<std::int64_t>> blocking_call(pid_t id) const;
  /// Returns the thread ids of a process, ascending; the leader comes first unless ids have
  /// wrapped.
  Result<std::vector<pid_t>> tasks(pid_t pid) const;
  /// Returns a thread of the process that is not a zombie. Error kTraceeGone.
  Result<pid_t> live_task(pid_t pid) const;
  /// Returns the direct children of all its threads.
  Result<std::vector<pid_t>> children(pid_t pid) const;
  /// Returns every process id.
  Result<std::vector<pid_t>> processes() const;

  Result<std::string> comm(pid_t id) const;
  /// Returns the target of the exe link, with " (deleted)" if the file was deleted.
  Result<std::string> exe(pid_t id) const;
  /// Returns a path to open the program by: exe(), or that link's own path if the file was deleted.
  Result<std::string> program_path(pid_t id) const;
  Result<std::string> working_directory(pid_t id) const;
  /// Returns argv; empty for kernel threads and zombies.
  Result<std::vector<std::string>> command_line(pid_t id) const;
  Result<std::vector<std::uint8_t>> auxv(pid_t id) const;
  Result<std::vector<MapEntry>> maps(pid_t id) const;
  /// Returns an error if maps() is not permitted: the kernel decides when the file is opened.
  Result<void> may_read_maps(pid_t id) const;
  /// Returns the ISA from the executable's ELF header. Error kUnsupported for a foreign executable.
  Result<arch::Isa> isa(pid_t id) const;

 private:
  std::string root_;
};

}  // namespace backtrail::tracee
