#pragma once
/// @file
/// Keeps crash files of recorded processes that come to a bad end.

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
  /// %p is the process, %e its name, %t the time in seconds, %% a percent sign.
  std::string pattern;
  KeepPolicy keep;
  bool undumpable = false;  ///< Also of processes of which the kernel would keep no core.
  bool pack = false;        ///< With all that it takes to look at it elsewhere, see pack_crash().
  tracee::CoreOptions core;
  /// Where all the records are; null: threads' histories are what there is. Borrowed.
  TraceSpool* spool = nullptr;
  /// Memory for histories of threads that have ended.
  std::uint64_t ended_bytes = 64ULL << 20;
};

/// The name that a pattern stands for. Slashes in the process's name become exclamation marks.
[[nodiscard]] std::string crash_file_name(const std::string& pattern, pid_t pid,
                                          const std::string& name, std::time_t time);

/// Watches one run. The program's own file counts; those of its children only when the program
/// fails: tests that expect a death leave nothing behind.
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
  /// @return What to tell the user, a line each; nothing after a success.
  [[nodiscard]] std::string finish(const tracee::StopEvent& end);

 private:
  struct Kept {
    pid_t pid = 0;
    bool is_program = false;
    std::string path;
    std::string final_path;  ///< Where it goes if nobody else has that name.
    std::string what;
    std::string size;
    Ending ending;
    /// Kept before the program itself became another one, which cannot hand on how that ended.
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
