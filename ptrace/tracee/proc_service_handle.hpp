#pragma once
/// @file
/// libthread_db's view of a process: what the ps_* functions get as their first argument.

#include <map>
#include <string>

#include "ptrace/tracee/thread_db.hpp"

/// The name is proc_service.h's.
struct ps_prochandle {  // NOLINT(readability-identifier-naming): the C library's name
  backtrail::tracee::ThreadDbHost host;
  std::map<std::string, backtrail::TraceeAddr> symbols;
};

namespace backtrail::tracee {
/// Does nothing; a reference to it makes the linker take the ps_* functions out of the library.
void keep_proc_service() noexcept;
}  // namespace backtrail::tracee
