// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/gdb_signals.hpp"

#include <csignal>

#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

TEST(GdbSignals, TranslatesThoseThatDiffer) {
  EXPECT_EQ(to_gdb_signal(SIGBUS), 10);
  EXPECT_EQ(to_gdb_signal(SIGUSR1), 30);
  EXPECT_EQ(to_gdb_signal(SIGCHLD), 20);
  EXPECT_EQ(to_gdb_signal(SIGIO), 23);
  EXPECT_EQ(to_gdb_signal(SIGPWR), 32);
  EXPECT_EQ(to_gdb_signal(33), 45);
  EXPECT_EQ(to_gdb_signal(63), 75);
  EXPECT_EQ(to_gdb_signal(32), 77);
  EXPECT_EQ(to_gdb_signal(64), 78);
}

TEST(GdbSignals, HasAWordForSignalsGdbDoesNotKnow) {
  EXPECT_EQ(to_gdb_signal(SIGSTKFLT), kGdbSignalUnknown);
  EXPECT_EQ(to_gdb_signal(1000), kGdbSignalUnknown);
}

TEST(GdbSignals, ComesBackFromEveryLinuxSignal) {
  for (int signal = 0; signal <= 64; ++signal) {
    if (signal == SIGSTKFLT) continue;
    EXPECT_EQ(from_gdb_signal(to_gdb_signal(signal)), signal);
  }
}

TEST(GdbSignals, HasNothingForSignalsOfOtherSystems) {
  EXPECT_EQ(from_gdb_signal(7), std::nullopt);    // SIGEMT
  EXPECT_EQ(from_gdb_signal(29), std::nullopt);   // SIGLOST
  EXPECT_EQ(from_gdb_signal(79), std::nullopt);   // SIG65
  EXPECT_EQ(from_gdb_signal(143), std::nullopt);  // unknown
  EXPECT_EQ(from_gdb_signal(-1), std::nullopt);
}

TEST(GdbSignals, NamesThem) {
  EXPECT_EQ(gdb_signal_name(SIGSEGV), "SIGSEGV");
  EXPECT_EQ(gdb_signal_name(34), "SIG34");
  EXPECT_EQ(gdb_signal_name(SIGSTKFLT), "unknown");
}

}  // namespace
}  // namespace backtrail::server
