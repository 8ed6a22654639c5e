// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Branch stores of whole processes: one for all recorded threads, present and future.

#include <map>
#include <memory>

#include "decoder/bts/branch_store.hpp"
#include "ptrace/engine/engine.hpp"

namespace backtrail::server {

/// Owns the stores of processes. Must outlive the traces that they listen to. A store without a
/// configuration keeps no records.
class ProcessStores {
 public:
  /// Returns the process's store, made at the first call. It listens to every thread recorded now.
  decoder::BranchStore& of(tracee::Process& process);
  /// Listens to threads recorded since the last call and drops those of processes that are gone. If
  /// the kernel refuses scheduling marks, the thread has none.
  void follow(tracee::Engine& engine);
  /// Returns true if a store is configured.
  [[nodiscard]] bool any() const;

 private:
  std::map<pid_t, std::unique_ptr<decoder::BranchStore>> stores_;
};

}  // namespace backtrail::server
