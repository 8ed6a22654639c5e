// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// libthread_db, with symbols that only the client can look up.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread_db.hpp"

namespace backtrail::server {

/// Opens libthread_db for each process once its symbols are known, and queries it.
class LiveSymbols {
 public:
  /// Returns the names to look up; empty once the library is open.
  std::vector<std::string> wanted(tracee::Process& process);
  void resolved(tracee::Process& process, const std::map<std::string, TraceeAddr>& symbols);
  /// Drops a process that has ended or has executed another program.
  void forget(pid_t pid);

  /// Returns the bytes of the thread's pthread_t; empty = unknown.
  std::vector<std::uint8_t> handle(tracee::ThreadId thread);
  /// Error kUnsupported without libthread_db.
  Result<TraceeAddr> tls_address(tracee::ThreadId thread, std::uint64_t offset,
                                 TraceeAddr link_map);

  /// Sets where the library is searched for, like gdb's libthread-db-search-path; empty = the
  /// default.
  void set_search_path(const std::string& path);

 private:
  struct Known {
    std::map<std::string, TraceeAddr> symbols;
    std::unique_ptr<tracee::TraceeMemory> memory;
    std::unique_ptr<tracee::ThreadDb> library;
  };
  void try_open(tracee::Process& process, Known& known);

  std::string search_path_{tracee::ThreadDb::kDefaultSearchPath};
  std::map<pid_t, Known> processes_;
};

}  // namespace backtrail::server
