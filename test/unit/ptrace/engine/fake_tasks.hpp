// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A task table whose processes are names only: the kernel does not know them as traced. They have
/// the test's memory and no registers.

#include <csignal>
#include <memory>

#include <sys/ptrace.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "ptrace/codecache/space/code_writers.hpp"
#include "ptrace/engine/task_table.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread.hpp"

namespace backtrail::tracee {

/// Returns an id that no task of this machine has: it is past the kernel's limit of 4 Mi.
constexpr pid_t operator""_id(unsigned long long number) {
  return static_cast<pid_t>((1ULL << 23) + number);
}

class FakeTasks final : private ProcessObserver {
 public:
  FakeTasks() = default;
  FakeTasks(const FakeTasks&) = delete;
  FakeTasks& operator=(const FakeTasks&) = delete;
  ~FakeTasks() override {
    while (!table_.processes().empty()) table_.remove_process(table_.processes().begin()->first);
  }

  [[nodiscard]] TaskTable& table() { return table_; }
  Process& add_process(pid_t pid) {
    auto opened = Process::open(pid, ::getpid(), /*attached=*/false, *this);
    EXPECT_TRUE(opened);
    Process& process = table_.add(std::move(*opened));
    process.code_writers = std::make_shared<cache::CodeWriters>();
    return process;
  }
  /// Adds a thread that the client has resumed and that runs.
  Thread& add_running(Process& process, pid_t tid) {
    Thread& thread = table_.add_thread(process, tid);
    thread.control().resumed = true;
    return thread;
  }
  /// Adds a thread that the client has resumed and that is stopped for the engine's sake.
  Thread& add_stopped(Process& process, pid_t tid) {
    Thread& thread = add_running(process, tid);
    stop(thread);
    return thread;
  }
  static void stop(Thread& thread) {
    thread.note_stop(WaitStatus::decode(PTRACE_EVENT_STOP << 16 | SIGTRAP << 8 | 0x7f));
  }
  static void stop_for(Thread& thread, int signal) {
    thread.note_stop(WaitStatus::decode(signal << 8 | 0x7f));
  }

 private:
  void on_begin(Process& /*process*/) override {}
  void on_inherit(Process& /*parent*/, Process& /*child*/) override {}
  void on_new_image(Process& /*process*/) override {}
  void on_end(Process& /*process*/) override {}

  TaskTable table_;
};

}  // namespace backtrail::tracee
