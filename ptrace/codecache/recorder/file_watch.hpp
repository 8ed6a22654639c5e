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

}  // namespace backtrail::tracee::cache
