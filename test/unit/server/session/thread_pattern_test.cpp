// SPDX-License-Identifier: Apache-2.0
#include "server/session/thread_pattern.hpp"

#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

std::optional<ThreadPattern> parse(std::string_view text) {
  PacketText packet{text};
  return take_thread_pattern(packet);
}

TEST(ThreadPattern, ReadsEveryForm) {
  EXPECT_EQ(parse("p1f.2a"), (ThreadPattern{0x1f, 0x2a}));
  EXPECT_EQ(parse("p1f.-1"), (ThreadPattern{0x1f, ThreadPattern::kAll}));
  EXPECT_EQ(parse("p1f.0"), (ThreadPattern{0x1f, ThreadPattern::kAny}));
  EXPECT_EQ(parse("p1f"), (ThreadPattern{0x1f, ThreadPattern::kAll}));
  EXPECT_EQ(parse("p-1.-1"), (ThreadPattern{-1, -1}));
  EXPECT_EQ(parse("p0.0"), (ThreadPattern{0, 0}));
  EXPECT_EQ(parse("2a"), (ThreadPattern{0, 0x2a}));
  EXPECT_EQ(parse("-1"), (ThreadPattern{0, -1}));
  EXPECT_EQ(parse("0"), (ThreadPattern{0, 0}));
}

TEST(ThreadPattern, RefusesOtherText) {
  for (const char* bad : {"", "p", "p.", "p1.", "px.1", "x", "-2", "80000000", "p1.80000000"}) {
    EXPECT_FALSE(parse(bad)) << bad;
  }
}

TEST(ThreadPattern, MatchesByWildcard) {
  const tracee::ThreadId thread{1, 2};
  EXPECT_TRUE((ThreadPattern{1, 2}).matches(thread));
  EXPECT_TRUE((ThreadPattern{1, -1}).matches(thread));
  EXPECT_TRUE((ThreadPattern{0, 2}).matches(thread));
  EXPECT_TRUE((ThreadPattern{-1, -1}).matches(thread));
  EXPECT_FALSE((ThreadPattern{1, 3}).matches(thread));
  EXPECT_FALSE((ThreadPattern{2, -1}).matches(thread));
}

TEST(ThreadPattern, WritesIdsAsTheClientUnderstandsThem) {
  EXPECT_EQ(format_thread({0x1f, 0x2a}, true), "p1f.2a");
  EXPECT_EQ(format_thread({0x1f, 0x2a}, false), "2a");
}

TEST(ThreadPattern, TakesOnlyRealProcessIds) {
  const auto pid = [](std::string_view text) {
    PacketText packet{text};
    return take_pid(packet);
  };
  EXPECT_EQ(pid("1f"), 0x1f);
  EXPECT_EQ(pid("0"), std::nullopt);
  EXPECT_EQ(pid("-1"), std::nullopt);
  EXPECT_EQ(pid("ffffffff"), std::nullopt);
}

}  // namespace
}  // namespace backtrail::server
