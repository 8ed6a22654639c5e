// GoogleTest's death tests, in the style that the command line selects.
#include <csignal>
#include <cstdio>
#include <cstdlib>

#include <gtest/gtest.h>

int* volatile nowhere;
volatile int sink;

TEST(Expected, Deaths) {
  for (int i = 0; i < 3; ++i) {
    EXPECT_DEATH(
        {
          std::fputs("no shelf\n", stderr);
          std::abort();
        },
        "no shelf");
    EXPECT_EXIT(std::exit(3), testing::ExitedWithCode(3), "");
    EXPECT_EXIT(sink = *nowhere, testing::KilledBySignal(SIGSEGV), "");
  }
}

TEST(Wrong, Reason) {
  EXPECT_DEATH(sink = *nowhere, "another reason");
}

TEST(Wrong, NoDeath) {
  EXPECT_DEATH(sink = 1, "");
}

TEST(Unexpected, Crash) {
  EXPECT_DEATH(std::abort(), "");
  sink = *nowhere;
}

// SPDX-License-Identifier: Apache-2.0
