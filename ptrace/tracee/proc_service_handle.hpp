// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// libthread_db's view of a process: the first argument of the ps_* functions.

#include <map>
#include <string>

#include "ptrace/tracee/thread_db.hpp"

/// The name is prescribed by proc_service.h.
struct ps_prochandle {  // NOLINT(readability-identifier-naming): the C library's name
  backtrail::tracee::ThreadDbHost host;
  std::map<std::string, backtrail::TraceeAddr> symbols;
};

namespace backtrail::tracee {
/// Does nothing. A reference to it makes the linker take the ps_* functions from the library.
void keep_proc_service() noexcept;
}  // namespace backtrail::tracee
