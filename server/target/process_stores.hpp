#pragma once
/// @file
/// Branch stores of whole processes: all threads that are recorded, however many come.

#include <map>
#include <memory>

#include "decoder/bts/branch_store.hpp"
#include "ptrace/engine/engine.hpp"

namespace backtrail::server {

/// They outlive the traces that they listen to. What is not configured keeps nothing.
class ProcessStores {
 public:
  /// Made at the first call; it listens to every thread that is recorded now.
  decoder::BranchStore& of(tracee::Process& process);
  /// Threads that are recorded since the last call are listened to, and those of processes that
  /// are gone let go. Errors of the kernel's leave a thread without marks.
  void follow(tracee::Engine& engine);
  /// One of them is configured.
  [[nodiscard]] bool any() const;

 private:
  std::map<pid_t, std::unique_ptr<decoder::BranchStore>> stores_;
};

}  // namespace backtrail::server
