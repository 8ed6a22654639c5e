// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/crash_signature.hpp"

#include <vector>

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using Frames = std::vector<SignatureFrame>;

TEST(CrashSignature, HasTheInnermostFunctionsUpToMain) {
  EXPECT_EQ(
      crash_signature(Frames{{"f", "p"}, {"g", "p"}, {"main", "p"}, {"x", "libc.so.6"}}, "SIGSEGV"),
      "SIGSEGV f < g < main");
  EXPECT_EQ(crash_signature(
                Frames{{"a", "p"}, {"b", "p"}, {"c", "p"}, {"d", "p"}, {"e", "p"}, {"f", "p"}},
                "SIGSEGV"),
            "SIGSEGV a < b < c < d < e");
}

TEST(CrashSignature, LeavesOutWhatReportsAnError) {
  EXPECT_EQ(crash_signature(Frames{{"raise", "libc.so.6"}, {"abort", "libc.so.6"}, {"f", "p"}},
                            "SIGABRT"),
            "SIGABRT f");
  // A static program.
  EXPECT_EQ(crash_signature(Frames{{"__pthread_kill_implementation", "p"},
                                   {"raise", "p"},
                                   {"abort", "p"},
                                   {"__assert_fail", "p"},
                                   {"f", "p"}},
                            "SIGABRT"),
            "SIGABRT f");
  EXPECT_EQ(crash_signature(Frames{{"__memcpy_avx_unaligned", "libc.so.6"}, {"f", "p"}}, "SIGSEGV"),
            "SIGSEGV f");
}

TEST(CrashSignature, CountsRecursionOnce) {
  EXPECT_EQ(crash_signature(Frames{{"f", "p"}, {"f", "p"}, {"f", "p"}, {"main", "p"}}, "SIGSEGV"),
            "SIGSEGV f < main");
}

TEST(CrashSignature, ALibraryAloneIsBetterThanNothing) {
  EXPECT_EQ(crash_signature(Frames{{"raise", "libc.so.6"}}, "SIGABRT"), "SIGABRT raise");
  EXPECT_EQ(crash_signature({}, "exit 3"), "exit 3");
}

TEST(CrashSignature, RunTimeLibrariesAreKnownByName) {
  for (const char* module :
       {"libc.so.6+0x123", "libstdc++.so.6.0.30+0xd4490", "ld-linux-x86-64.so.2"}) {
    EXPECT_TRUE(is_run_time_library(module)) << module;
  }
  for (const char* module : {"", "program+0x1", "libcrypto.so.3+0x5"}) {
    EXPECT_FALSE(is_run_time_library(module)) << module;
  }
}

}  // namespace
}  // namespace backtrail::decoder
