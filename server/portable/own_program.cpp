// SPDX-License-Identifier: Apache-2.0
#include "server/portable/own_program.hpp"

#include <unistd.h>

#include "ptrace/os/procfs.hpp"

namespace backtrail::server {

Result<OwnProgram> own_program(TraceeAddr inside) {
  const tracee::ProcFs proc;
  OwnProgram own;
  BT_TRY(own.executable, proc.exe(::getpid()));
  BT_TRY(const std::vector<tracee::MapEntry> maps, proc.maps(::getpid()));
  for (const tracee::MapEntry& map : maps) {
    if (map.start <= inside.value() && inside.value() < map.end) own.file = map.path;
  }
  if (own.file.empty()) {
    return fail(TraceErrc::kUnreadable, "find this program's file", inside.value());
  }
  if (own.file != own.executable) {
    own.prefix = {"--library-path", own.file.substr(0, own.file.rfind('/')), own.file};
  }
  return own;
}

Result<TraceeAddr> place_of(pid_t pid, const std::string& file) {
  BT_TRY(const std::vector<tracee::MapEntry> maps, tracee::ProcFs{}.maps(pid));
  for (const tracee::MapEntry& map : maps) {
    if (map.path == file) return TraceeAddr{map.start};
  }
  return fail(TraceErrc::kUnreadable, "find a program's file in its process", 0);
}

}  // namespace backtrail::server
