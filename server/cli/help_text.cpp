// SPDX-License-Identifier: Apache-2.0
#include "server/cli/help_text.hpp"

namespace backtrail::server {

std::string gdbserver_usage() {
  return R"(Usage: backtrail-gdbserver [OPTIONS] COMM PROG [ARGS ...]
       backtrail-gdbserver [OPTIONS] --attach COMM PID
       backtrail-gdbserver [OPTIONS] --multi COMM

COMM is where gdb connects to:
  :PORT                   TCP, from this machine only; port 0 takes a free one
  HOST:PORT, [V6]:PORT    TCP, at this address only; 0.0.0.0:PORT means every address
  unix:PATH               a Unix domain socket
  - or stdio              standard input and output
  DEVICE                  a serial line, by its path

Mode:
  --attach                attach to the running process PID
  --multi                 wait for gdb to name the program, and keep serving when it ends
  --once                  serve one connection, then exit
  --help, --version       print and exit

Starting the program:
  --wrapper WORDS --      command that starts it, for example: --wrapper env A=1 --
  --[no-]disable-randomization   turn off address randomization (default: yes)
  --[no-]startup-with-shell      start it through a shell; ARGS stay unchanged (default: yes)

Branch trace:
  --source KIND           auto, perf-pt, perf-bts, lbr, cache or step (default: auto)

Logging and tests:
  --debug                 log what happens
  --remote-debug          log packets
  --event-loop-debug      log the event loop
  --debug-format=WORDS    accepted (all, none, timestamp); every line has a time
  --debug-file=FILE, --log-file FILE   log to FILE, not to stderr
  --log SPEC              levels, for example: rsp:debug,ptrace:debug
  --disable-packet[=LIST] disable these packets; without LIST, list the names
  --selftest[=FILTER]     accepted; the tests are separate programs
)";
}

std::string backtrail_version() {
  return "backtrail " BT_VERSION "\n";
}

std::string gdbserver_version() {
  return "backtrail-gdbserver " BT_VERSION "\nA server for gdb that always has a branch trace.\n";
}

}  // namespace backtrail::server
