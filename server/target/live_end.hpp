// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A stopped live process as the end of its past.

#include <map>
#include <optional>
#include <string>

#include "ptrace/tracee/process.hpp"
#include "server/target/past_end.hpp"

namespace backtrail::server {

/// The newest place of each thread, by tid, at which the debugger changed registers or memory.
using PastChanges = std::map<pid_t, decoder::PastPosition>;

/// All threads of the process are stopped while the object exists, and nothing changes them.
class LiveEnd final : public PastEnd {
 public:
  /// Both are borrowed.
  LiveEnd(tracee::Process& process, const PastChanges& changes);

  std::optional<ThreadEnd> thread(tracee::ThreadId id) override;
  [[nodiscard]] tracee::ProgramMemory& memory() override { return memory_; }
  [[nodiscard]] const PastPages& pages() const override { return pages_; }
  [[nodiscard]] const arch::cpu::GdbRegisterSet& registers() const override {
    return process_.register_set();
  }
  [[nodiscard]] std::string why_no_past(tracee::ThreadId id) const override;

 private:
  tracee::Process& process_;
  const PastChanges& changes_;
  tracee::ProgramMemory memory_;
  PastPages pages_;
};

/// Returns the place where the stopped thread is; nullopt if it has no history.
[[nodiscard]] std::optional<decoder::PastPosition> present_place(tracee::Thread& thread);
/// Returns why memory of the process's past is not shown, as "the program has had several threads";
/// nullopt if it is shown.
[[nodiscard]] std::optional<std::string> why_no_past_memory(tracee::Process& process);

}  // namespace backtrail::server
