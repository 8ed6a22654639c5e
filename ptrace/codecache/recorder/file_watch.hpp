// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Sees by which calls a stepped thread may write memory without a store.

#include <optional>

#include "ptrace/codecache/recorder/file_call.hpp"
#include "ptrace/source/call_watch.hpp"

namespace backtrail::tracee::cache {

class FileWatch final : public CallWatch {
 public:
  void begin(Thread& thread) override;
  void end(Thread& thread) override;

 private:
  std::optional<FileCall> call_;
};

/// Tells the process's CodeWriters of a call that is not made by the SYSCALL instruction of a
/// 64-bit program. Its number and arguments are not looked at, so it may have done anything.
void note_other_call(Thread& thread);

}  // namespace backtrail::tracee::cache
