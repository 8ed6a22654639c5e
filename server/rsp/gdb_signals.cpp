// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/gdb_signals.hpp"

#include <csignal>

#include <algorithm>
#include <array>

#include <fmt/format.h>

namespace backtrail::server {
namespace {

struct SignalRow {
  int gdb;
  int host;
  const char* name;
};

constexpr std::array kSignals = {
    SignalRow{1, SIGHUP, "SIGHUP"},
    SignalRow{2, SIGINT, "SIGINT"},
    SignalRow{3, SIGQUIT, "SIGQUIT"},
    SignalRow{4, SIGILL, "SIGILL"},
    SignalRow{5, SIGTRAP, "SIGTRAP"},
    SignalRow{6, SIGABRT, "SIGABRT"},
    SignalRow{8, SIGFPE, "SIGFPE"},
    SignalRow{9, SIGKILL, "SIGKILL"},
    SignalRow{10, SIGBUS, "SIGBUS"},
    SignalRow{11, SIGSEGV, "SIGSEGV"},
    SignalRow{12, SIGSYS, "SIGSYS"},
    SignalRow{13, SIGPIPE, "SIGPIPE"},
    SignalRow{14, SIGALRM, "SIGALRM"},
    SignalRow{15, SIGTERM, "SIGTERM"},
    SignalRow{16, SIGURG, "SIGURG"},
    SignalRow{17, SIGSTOP, "SIGSTOP"},
    SignalRow{18, SIGTSTP, "SIGTSTP"},
    SignalRow{19, SIGCONT, "SIGCONT"},
    SignalRow{20, SIGCHLD, "SIGCHLD"},
    SignalRow{21, SIGTTIN, "SIGTTIN"},
    SignalRow{22, SIGTTOU, "SIGTTOU"},
    SignalRow{23, SIGIO, "SIGIO"},
    SignalRow{24, SIGXCPU, "SIGXCPU"},
    SignalRow{25, SIGXFSZ, "SIGXFSZ"},
    SignalRow{26, SIGVTALRM, "SIGVTALRM"},
    SignalRow{27, SIGPROF, "SIGPROF"},
    SignalRow{28, SIGWINCH, "SIGWINCH"},
    SignalRow{30, SIGUSR1, "SIGUSR1"},
    SignalRow{31, SIGUSR2, "SIGUSR2"},
    SignalRow{32, SIGPWR, "SIGPWR"},
    // SIGPOLL is SIGIO on Linux. The row comes after SIGIO's, so that SIGIO is reported as 23.
    SignalRow{33, SIGPOLL, "SIGPOLL"},
};

// gdb's list has three separate places for realtime signals: 33 to 63, 32, and 64.
constexpr int kGdbRealtime33 = 45;
constexpr int kGdbRealtime32 = 77;
constexpr int kGdbRealtime64 = 78;

}  // namespace

int to_gdb_signal(int linux_signal) {
  if (linux_signal == 0) return 0;
  const auto* row = std::ranges::find(kSignals, linux_signal, &SignalRow::host);
  if (row != kSignals.end()) return row->gdb;
  if (linux_signal == 32) return kGdbRealtime32;
  if (linux_signal >= 33 && linux_signal <= 63) return kGdbRealtime33 + (linux_signal - 33);
  if (linux_signal == 64) return kGdbRealtime64;
  return kGdbSignalUnknown;
}

std::optional<int> from_gdb_signal(int gdb_signal) {
  if (gdb_signal == 0) return 0;
  const auto* row = std::ranges::find(kSignals, gdb_signal, &SignalRow::gdb);
  if (row != kSignals.end()) return row->host;
  if (gdb_signal >= kGdbRealtime33 && gdb_signal < kGdbRealtime33 + 31) {
    return 33 + (gdb_signal - kGdbRealtime33);
  }
  if (gdb_signal == kGdbRealtime32) return 32;
  if (gdb_signal == kGdbRealtime64) return 64;
  return std::nullopt;
}

std::string gdb_signal_name(int linux_signal) {
  const auto* row = std::ranges::find(kSignals, linux_signal, &SignalRow::host);
  if (row != kSignals.end()) return row->name;
  if (linux_signal >= 32 && linux_signal <= 64) return fmt::format("SIG{}", linux_signal);
  return "unknown";
}

}  // namespace backtrail::server
