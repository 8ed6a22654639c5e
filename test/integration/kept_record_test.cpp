// SPDX-License-Identifier: Apache-2.0
// `backtrail record` keeps translations; with values, beside those of runs without values.

#include <regex>
#include <string>

#include <gtest/gtest.h>

#include "own_cache.hpp"

namespace backtrail::test {
namespace {

struct Program {
  const char* name;
  Words words;
};

class KeptWithValues : public testing::TestWithParam<Program> {
 protected:
  Ran record(const std::string& values) {
    return cache_.run(
        with({"record", "--stats", "--values", values, "-o", core(), "--"}, GetParam().words));
  }
  /// Returns the values in the report of the crash file, without what differs in each run.
  std::string report() {
    std::string text = cache_.run({"report", "--values", core()}).output;
    text = std::regex_replace(text, std::regex{"0x[0-9a-f]+"}, "ADDRESS");
    text = std::regex_replace(text, std::regex{"(process|thread) [0-9]+"}, "$1");
    return std::regex_replace(text, std::regex{"\n *last [^\n]*"}, "");
  }
  [[nodiscard]] std::string core() const { return cache_.folder() + "/core"; }

 private:
  OwnCache cache_;
};

TEST_P(KeptWithValues, LaterRunsTranslateLittle) {
  const Ran first = record("most");
  const int made = printed(first, "translated");
  EXPECT_GT(printed(first, "values"), 0);
  for (int i = 0; i < 2; ++i) {
    const Ran later = record("most");
    EXPECT_EQ(later.status, first.status) << later.output;
    EXPECT_LT(printed(later, "translated") * 3, made);
    EXPECT_GT(printed(later, "values"), 0);
  }
}

TEST_P(KeptWithValues, NeitherDepthTakesTheOthersTranslations) {
  const Ran free = record("free");
  const Ran most = record("most");
  EXPECT_GT(printed(most, "translated") * 2, printed(free, "translated"));
  for (int i = 0; i < 2; ++i) {
    EXPECT_LT(printed(record("free"), "translated") * 3, printed(free, "translated"));
    EXPECT_LT(printed(record("most"), "translated") * 3, printed(most, "translated"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, KeptWithValues,
    testing::Values(Program{"calls", {BT_INFERIOR_DIR "/calls"}},
                    Program{"crash", {BT_INFERIOR_DIR "/valued"}},
                    Program{"threads", {BT_INFERIOR_DIR "/tallies", "threads"}},
                    Program{"children", {BT_INFERIOR_DIR "/prefork", "4"}},
                    Program{"signals", {BT_INFERIOR_DIR "/storm", "raise", "500"}},
                    Program{"shell", shell("for i in 1 2 3; do /bin/echo $i; done")}),
    [](const auto& program) { return std::string{program.param.name}; });

class KeptWithValuesOfACrash : public KeptWithValues {};

TEST_P(KeptWithValuesOfACrash, ReportsAreTheSame) {
  const Ran first = record("most");
  const std::string values = report();
  for (int i = 0; i < 2; ++i) {
    const Ran later = record("most");
    // The stack is elsewhere, so the program may take another path in the C library.
    EXPECT_NEAR(printed(later, "values"), printed(first, "values"), 100);
    EXPECT_LT(printed(later, "translated") * 20, printed(first, "translated"));
    EXPECT_EQ(report(), values);
  }
}

INSTANTIATE_TEST_SUITE_P(Programs, KeptWithValuesOfACrash,
                         testing::Values(Program{"valued", {BT_INFERIOR_DIR "/valued"}},
                                         Program{"valued_O2", {BT_INFERIOR_DIR "/valued_O2"}}),
                         [](const auto& program) { return std::string{program.param.name}; });

TEST(KeptFiles, MayBeEmptiedWhileTheyAreInUse) {
  const OwnCache cache;
  const auto run = [&](const std::string& script) {
    return cache.run(with({"record", "--"}, shell(script)));
  };
  const std::string work = "for i in 1 2 3; do /bin/echo $i; done; printf 'a\nb\n' | sort";
  for (int i = 0; i < 2; ++i) EXPECT_EQ(run(work).status, 0);
  const Ran emptied =
      run("for f in " + cache.folder() + "/backtrail/*.code; do : > $f; done; " + work);
  EXPECT_EQ(emptied.status, 0);
  EXPECT_EQ(emptied.output, "1\n2\n3\na\nb\n");
  EXPECT_EQ(run(work).output, emptied.output);
}

}  // namespace
}  // namespace backtrail::test
