// SPDX-License-Identifier: Apache-2.0
// Runs one session with backtrail and with gdbserver: gdb must print the same.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <regex>

#include "test/gdb/on_program.hpp"
#include "test/support/machine.hpp"

namespace backtrail::test {
namespace {

struct Script {
  const char* name;
  const char* program;
  std::vector<std::string> commands;
};

void PrintTo(const Script& script, std::ostream* out) {
  *out << script.name;
}

/// Removes process and thread ids and AVX-512 masks: gdbserver 13 reads the masks at Intel's offset
/// in the XSAVE area, which is not AMD's.
std::string comparable(const std::string& text) {
  static const std::regex ids{R"((process|Thread|pid =|LWP) ?[0-9]+(\.[0-9]+)?)"};
  static const std::regex masks{R"(k[0-7] +0x.*\n)"};
  return std::regex_replace(std::regex_replace(text, ids, "$1 N"), masks, "");
}

std::vector<std::string> replies(const Script& script, Peer peer) {
  GdbOptions options = on(script.program);
  options.peer = peer;
  GdbSession gdb{std::move(options)};
  std::vector<std::string> all;
  for (const std::string& command : script.commands) {
    all.push_back(command + "\n" + comparable(gdb.run(command)));
  }
  return all;
}

class SameAsGdbserver : public ::testing::TestWithParam<Script> {};

TEST_P(SameAsGdbserver, InEveryReply) {
  if (!can_run_inferior(inferior(GetParam().program))) GTEST_SKIP() << kNo32Bits;
  EXPECT_EQ(replies(GetParam(), Peer::kUnderTest), replies(GetParam(), Peer::kGdbserver));
}

std::vector<Script> scripts() {
  std::vector<std::string> everything{
      "info registers",
      "info registers float",
      "info registers sse",
      "x/20xg $sp",
      "x/5i $pc",
      "info auxv",
      "break touch_global",
      "continue",
      "info registers",
      "backtrace",
      "info sharedlibrary",
      "print $_siginfo.si_signo",
      "info signals SIGUSR1",
      "stepi",
      "info registers rip eflags",
      "next",
      "finish",
      "watch global",
      "continue",
      "info breakpoints",
      "print fib(6)",
      "print errno",
      "x/4xb 0",
      "print *(int*)0 = 1",
      "info program",
      "info threads",
      "until",
      "advance all_done",
      "detach",
  };
  // gdbserver waits for ever where debug registers do not trap; backtrail refuses them.
  if (!tracee::debug_registers_trap()) std::erase(everything, "watch global");
  return {
      {"Calls", "calls", everything},
      {"Static", "calls_static", everything},
      {"I386", "calls_i386", everything},
      {"Signals",
       "signals",
       {"continue", "info registers rip", "print $_siginfo.si_code", "stepi", "backtrace",
        "continue", "handle SIGALRM stop print", "continue", "signal 0", "signal SIGUSR2",
        "continue", "continue", "print $_exitcode"}},
      {"Forks",
       "forks",
       {"catch fork", "continue", "next", "set follow-fork-mode child", "break in_child",
        "continue", "continue"}},
      {"ReturnsFromHandlers",
       "signals",
       {"handle SIGUSR1 nostop noprint", "break on_usr1", "continue", "catch syscall", "continue",
        "continue", "continue"}},
      {"SystemCalls",
       "jumps",
       {"handle SIGUSR1 nostop noprint", "break call_system", "continue", "catch syscall",
        "continue", "info registers rax orig_rax rcx r11", "continue",
        "info registers rax orig_rax rcx r11", "delete", "continue"}},
      {"Description",
       "calls",
       {"maint print xml-tdesc", "info proc exe", "info proc cmdline", "info proc cwd"}},
  };
}

INSTANTIATE_TEST_SUITE_P(Gdb, SameAsGdbserver, ::testing::ValuesIn(scripts()),
                         [](const auto& test) { return std::string{test.param.name}; });

}  // namespace
}  // namespace backtrail::test
