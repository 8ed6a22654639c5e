// SPDX-License-Identifier: Apache-2.0
// `backtrail warm`: first runs find what was translated ahead.

#include <algorithm>
#include <string>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "own_cache.hpp"
#include "test/support/own_affinity.hpp"

namespace backtrail::test {
namespace {

using testing::HasSubstr;

/// Records a program; returns the number of misses.
int misses_of(const std::string& program, const OwnCache& cache) {
  const OneCpu misses_by_stops;
  return printed(cache.run({"record", "--stats", "--source", "cache", "--", program}), "misses");
}

TEST(Warm, AFirstRunMissesLittle) {
  const std::string program = BT_INFERIOR_DIR "/calls";
  const OwnCache cache;
  const Ran warmed = cache.run({"warm", program});
  EXPECT_EQ(warmed.status, 0) << warmed.output;
  EXPECT_THAT(warmed.output, HasSubstr(program + ": "));
  EXPECT_LT(misses_of(program, cache) * 3, misses_of(program, OwnCache{}));
}

TEST(Warm, NothingOfTheProgramRuns) {
  for (const std::string name : {"/throws", "/plain_static"}) {
    const OwnCache cache;
    const Ran warmed = cache.run({"warm", BT_INFERIOR_DIR + name});
    EXPECT_EQ(warmed.status, 0) << warmed.output;
    // One line: what a program prints does not come.
    EXPECT_EQ(std::count(warmed.output.begin(), warmed.output.end(), '\n'), 1) << warmed.output;
  }
}

TEST(Warm, SaysThatNothingCanBeKept) {
  const OwnCache cache;
  // Others could put code there.
  const std::string store = cache.folder() + "/backtrail";
  ASSERT_EQ(::mkdir(store.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(store.c_str(), 0777), 0);
  const Ran warmed = cache.run({"warm", BT_INFERIOR_DIR "/calls"});
  EXPECT_EQ(warmed.status, 1);
  EXPECT_THAT(warmed.output, HasSubstr("cannot be kept in '" + store + "'"));
}

TEST(Warm, SaysWhatItCannotTranslate) {
  const OwnCache cache;
  const Ran warmed = cache.run({"warm", "/nonexistent/program", BT_INFERIOR_DIR "/calls"});
  EXPECT_EQ(warmed.status, 1);
  EXPECT_THAT(warmed.output, HasSubstr("/nonexistent/program"));
  EXPECT_THAT(warmed.output, HasSubstr(BT_INFERIOR_DIR "/calls: "));
}

}  // namespace
}  // namespace backtrail::test
