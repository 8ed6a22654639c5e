// SPDX-License-Identifier: Apache-2.0
// `backtrail warm`: first runs find what was translated ahead.

#include <algorithm>
#include <regex>
#include <string>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::HasSubstr;

/// A persistent cache of its own.
class Cache {
 public:
  [[nodiscard]] const std::string& folder() const { return folder_.path(); }
  [[nodiscard]] Ran run(const Words& words) const {
    std::vector<std::string> environment = record_environment();
    std::erase_if(environment, [](const std::string& entry) {
      return entry.starts_with("BACKTRAIL_KEEP=") || entry.starts_with("XDG_CACHE_HOME=");
    });
    environment.push_back("XDG_CACHE_HOME=" + folder_.path());
    Subprocess process{{.arguments = with({BT_BACKTRAIL}, words),
                        .environment = std::move(environment),
                        .working_directory = {}}};
    return finish(process);
  }
  /// Records a program; returns the number of misses.
  [[nodiscard]] int misses_of(const std::string& program) const {
    const Ran recorded = run({"record", "--stats", "--source", "cache", "--", program});
    std::smatch found;
    const bool told = std::regex_search(recorded.output, found, std::regex{"misses +([0-9]+)\n"});
    EXPECT_TRUE(told) << recorded.output;
    return told ? std::stoi(found[1]) : 0;
  }

 private:
  TemporaryFolder folder_;
};

TEST(Warm, AFirstRunMissesLittle) {
  const std::string program = BT_INFERIOR_DIR "/calls";
  const Cache cache;
  const Ran warmed = cache.run({"warm", program});
  EXPECT_EQ(warmed.status, 0) << warmed.output;
  EXPECT_THAT(warmed.output, HasSubstr(program + ": "));
  EXPECT_LT(cache.misses_of(program) * 3, Cache{}.misses_of(program));
}

TEST(Warm, NothingOfTheProgramRuns) {
  for (const std::string name : {"/throws", "/plain_static"}) {
    const Cache cache;
    const Ran warmed = cache.run({"warm", BT_INFERIOR_DIR + name});
    EXPECT_EQ(warmed.status, 0) << warmed.output;
    // One line: what a program prints does not come.
    EXPECT_EQ(std::count(warmed.output.begin(), warmed.output.end(), '\n'), 1) << warmed.output;
  }
}

TEST(Warm, SaysThatNothingCanBeKept) {
  const Cache cache;
  // Others could put code there.
  const std::string store = cache.folder() + "/backtrail";
  ASSERT_EQ(::mkdir(store.c_str(), 0777), 0);
  ASSERT_EQ(::chmod(store.c_str(), 0777), 0);
  const Ran warmed = cache.run({"warm", BT_INFERIOR_DIR "/calls"});
  EXPECT_EQ(warmed.status, 1);
  EXPECT_THAT(warmed.output, HasSubstr("cannot be kept in '" + store + "'"));
}

TEST(Warm, SaysWhatItCannotTranslate) {
  const Cache cache;
  const Ran warmed = cache.run({"warm", "/nonexistent/program", BT_INFERIOR_DIR "/calls"});
  EXPECT_EQ(warmed.status, 1);
  EXPECT_THAT(warmed.output, HasSubstr("/nonexistent/program"));
  EXPECT_THAT(warmed.output, HasSubstr(BT_INFERIOR_DIR "/calls: "));
}

}  // namespace
}  // namespace backtrail::test
