#pragma once
/// @file
/// libthread_db over symbols that only the client can look up.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/tracee/process.hpp"
#include "ptrace/tracee/thread_db.hpp"

namespace backtrail::server {

/// Sets libthread_db up for each process once its symbols are known, and asks it.
class LiveSymbols {
 public:
  /// Names to be looked up; none once the library is set up.
  std::vector<std::string> wanted(tracee::Process& process);
  void resolved(tracee::Process& process, const std::map<std::string, TraceeAddr>& symbols);
  /// The process has ended, or is another program now.
  void forget(pid_t pid);

  /// Bytes of the thread's pthread_t; empty when unknown.
  std::vector<std::uint8_t> handle(tracee::ThreadId thread);
  /// Error kUnsupported without libthread_db.
  Result<TraceeAddr> tls_address(tracee::ThreadId thread, std::uint64_t offset,
                                 TraceeAddr link_map);

  /// Where the library is looked for, as gdbserver's libthread-db-search-path; empty = the default.
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
