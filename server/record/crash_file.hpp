#pragma once
/// @file
/// Keeps a crash file of a recorded process that a signal ends.

#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "ptrace/core/core_writer.hpp"
#include "server/record/recorder.hpp"

namespace backtrail::server {

struct CrashFileOptions {
  /// %p is the process, %e its name, %t the time in seconds, %% a percent sign.
  std::string pattern;
  tracee::CoreOptions core;
};

/// The name that a pattern stands for. Slashes in the process's name become exclamation marks.
[[nodiscard]] std::string crash_file_name(const std::string& pattern, pid_t pid,
                                          const std::string& name, std::time_t time);

/// Watches one run. A child's death counts only when the program fails as well: tests that expect
/// one leave nothing behind.
class CrashFiles final : public RecordObserver {
 public:
  CrashFiles(CrashFileOptions options, std::string command);

  void on_fatal_signal(tracee::Process& process, tracee::Thread& thread, int signal) override;
  /// Decides about the children's files.
  /// @return What to tell the user, a line each; nothing after a success.
  [[nodiscard]] std::string finish(const tracee::StopEvent& end);

 private:
  struct Kept {
    pid_t pid = 0;
    std::string path;
    std::string line;
  };
  Kept write(tracee::Process& process, tracee::Thread& thread, int signal);

  CrashFileOptions options_;
  std::string command_;
  std::vector<Kept> kept_;
  std::string failures_;
  std::uint64_t more_ = 0;
};

}  // namespace backtrail::server
