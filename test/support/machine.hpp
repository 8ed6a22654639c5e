// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Abilities of the machine that some tests need; hypervisors may lack some of the CPU's.

#include <cerrno>
#include <csignal>
#include <string>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptrace/os/debug_register_check.hpp"

namespace backtrail::test {

/// Returns true if the kernel can run the program at `path`, which must need no arguments and end
/// by itself.
inline bool can_run(const std::string& path) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  std::string name = path;
  char* arguments[] = {name.data(), nullptr};  // NOLINT(cppcoreguidelines-avoid-c-arrays)
  pid_t child = 0;
  const int failed = ::posix_spawn(&child, path.c_str(), &actions, nullptr, arguments, environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return false;
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return true;
}

/// Returns true if this program of test/inferiors can run here; only 32-bit ones may fail to.
inline bool can_run_inferior(const std::string& path) {
  return !path.ends_with("_i386") || can_run(path);
}

/// Returns true if 64-bit programs can make the calls of 32-bit ones (INT 0x80).
inline bool has_compat_calls() {
#if defined(__x86_64__)
  constexpr int kGetpid = 20;
  const pid_t child = ::fork();
  if (child == 0) {
    // A sanitizer has handlers of its own.
    ::signal(SIGSEGV, SIG_DFL);
    int result = kGetpid;
    __asm__ volatile("int $0x80" : "+a"(result) : : "memory", "r8", "r9", "r10", "r11");
    ::_exit(result > 0 ? 0 : 1);
  }
  int status = -1;
  while (child > 0 && ::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status == 0;
#else
  return false;
#endif
}

inline constexpr const char* kNoCompatCalls = "this kernel has no INT 0x80";
inline constexpr const char* kNo32Bits = "this machine runs no 32-bit programs";

}  // namespace backtrail::test
