#include "server/cli/help_text.hpp"

namespace backtrail::server {

std::string gdbserver_usage() {
  return R"(Usage: backtrail-gdbserver [OPTIONS] COMM PROG [ARGS ...]
       backtrail-gdbserver [OPTIONS] --attach COMM PID
       backtrail-gdbserver [OPTIONS] --multi COMM

COMM is where gdb connects to:
  :PORT                   TCP, from this machine only; port 0 takes a free one
  HOST:PORT, [V6]:PORT    TCP, at this address only; 0.0.0.0:PORT is every one
  unix:PATH               a Unix domain socket
  - or stdio              standard input and output
  DEVICE                  a serial line, by its path

What to do:
  --attach                take over the running process PID
  --multi                 wait for gdb to say what to run, and stay for more
  --once                  one connection; leave when it ends
  --help, --version       print and exit

The program that is started:
  --wrapper WORDS --      started by WORDS, for example: --wrapper env A=1 --
  --[no-]disable-randomization   its addresses are the same every time (default: yes)
  --[no-]startup-with-shell      a shell expands ARGS (default: yes)

The branch trace:
  --source KIND           auto, perf-pt, perf-bts, lbr, cache or step (default: auto)

Finding mistakes:
  --debug                 log what happens
  --remote-debug          log packets
  --event-loop-debug      log the event loop
  --debug-format=WORDS    accepted: all, none, timestamp; every line has a time
  --debug-file=FILE, --log-file FILE   log to FILE, not to stderr
  --log SPEC              levels, for example: rsp:debug,ptrace:debug
  --disable-packet[=LIST] do without these packets; alone it lists them
  --selftest[=FILTER]     accepted; the tests are a program of their own
)";
}

std::string backtrail_version() {
  return "backtrail " BT_VERSION "\n";
}

std::string gdbserver_version() {
  return "backtrail-gdbserver " BT_VERSION "\nA server for gdb that always has a branch trace.\n";
}

}  // namespace backtrail::server
