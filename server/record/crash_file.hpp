// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes crash files of recorded processes that fail.

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "ptrace/core/core_writer.hpp"
#include "server/record/ended_threads.hpp"
#include "server/record/ending.hpp"
#include "server/record/recorder.hpp"
#include "server/record/report_keeper.hpp"
#include "server/record/trace_spool.hpp"

namespace backtrail::server {

struct CrashFileOptions {
  /// %p is the pid, %e the process's name, %t the time in seconds, %% a percent sign.
  std::string pattern;
  KeepPolicy keep;
  bool undumpable = false;   ///< Include processes of which the kernel would write no core.
  bool pack = false;         ///< Pack the file with all that is needed to inspect it elsewhere, see
                             ///< pack_crash().
  bool attachments = false;  ///< Name each file in an attachment_line(), too.
  std::string project;       ///< Folder that attachments are relative to; empty = none.
  tracee::CoreOptions core;
  /// Holds all records; null: threads' histories are used. Borrowed.
  TraceSpool* spool = nullptr;
  /// Bytes of memory for histories of threads that have ended.
  std::uint64_t ended_bytes = 64ULL << 20;
};

/// Expands a pattern to a file name. Slashes in the process's name become exclamation marks.
[[nodiscard]] std::string crash_file_name(const std::string& pattern, pid_t pid,
                                          const std::string& name, std::time_t time);

/// Watches one run. Keeps the program's own file; its children's only if the program fails, so that
/// tests that expect a child to die leave no files.
class CrashFiles final : public RecordObserver {
 public:
  /// `recorder` is borrowed.
  CrashFiles(const Recorder& recorder, CrashFileOptions options, std::string command);

  [[nodiscard]] bool wants(pid_t pid, const Ending& ending) override;
  void on_ending(tracee::Process& process, tracee::Thread& thread, const Ending& ending) override;
  void on_thread_end(tracee::Thread& thread) override;
  void on_report(tracee::Thread& thread, bool may_end) override { reports_.note(thread, may_end); }
  void on_panic(tracee::Thread& thread) override;
  void on_exec(pid_t pid) override;
  void on_end(pid_t pid, const tracee::StopEvent& end) override;
  void on_checked(pid_t pid, const Ending& ending) override;
  /// Decides about the children's files.
  /// @return Text for the user, one line each; empty after a success.
  [[nodiscard]] std::string finish(const tracee::StopEvent& end);

 private:
  struct Kept {
    pid_t pid = 0;
    bool is_program = false;
    std::string path;
    std::string final_path;  ///< Final path, used unless another file has that name.
    std::string what;
    std::string size;
    Ending ending;
    /// Written before the program itself executed another program, which cannot pass on this
    /// ending.
    bool before_exec = false;
  };
  void write(tracee::Process& process, tracee::Thread& thread, const Ending& ending);
  void make_room();
  [[nodiscard]] std::size_t guilty(const tracee::StopEvent& end) const;
  [[nodiscard]] static std::string pack(Kept& kept);
  void note_unseen_end(const tracee::StopEvent& end);
  void note_failure(const std::string& why);

  const Recorder& recorder_;
  CrashFileOptions options_;
  std::string command_;
  EndedThreads ended_;
  ReportKeeper reports_;
  std::vector<Kept> kept_;  ///< Oldest first.
  std::string failures_;
  std::uint64_t children_seen_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace backtrail::server
