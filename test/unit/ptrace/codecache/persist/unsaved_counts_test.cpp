// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/unsaved_counts.hpp"

#include <algorithm>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "ptrace/codecache/persist/kept_name.hpp"
#include "ptrace/codecache/persist/note_file.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::tracee::cache {
namespace {

class UnsavedCountsTest : public testing::Test {
 protected:
  [[nodiscard]] std::filesystem::path note() const { return folder_ / "unsaved"; }
  /// Returns the count that a new recorder finds.
  [[nodiscard]] std::size_t found(const std::string& key) const {
    return UnsavedCounts{note()}.add(key, 0, true);
  }
  test::TemporaryFolder folder_;
  UnsavedCounts counts_{note()};
};

TEST_F(UnsavedCountsTest, AddUpUntilTheyAreSaved) {
  EXPECT_EQ(counts_.add("/bin/sh", 20, true), 20U);
  EXPECT_EQ(counts_.add("/bin/sh", 3, true), 23U);
  EXPECT_EQ(counts_.add("/bin/true", 1, true), 1U);
  counts_.clear("/bin/sh");
  EXPECT_EQ(counts_.add("/bin/sh", 2, true), 2U);
}

TEST_F(UnsavedCountsTest, TheNextRecorderGoesOn) {
  EXPECT_FALSE(counts_.has_news());
  (void)counts_.add("/bin/sh", 20, true);
  EXPECT_TRUE(counts_.has_news());
  counts_.save();
  EXPECT_FALSE(counts_.has_news());
  EXPECT_EQ(found("/bin/sh"), 20U);
  UnsavedCounts next{note()};
  EXPECT_EQ(next.add("/bin/sh", 5, true), 25U);
  next.clear("/bin/sh");
  EXPECT_TRUE(next.has_news());
  next.save();
  EXPECT_EQ(found("/bin/sh"), 0U);
}

TEST_F(UnsavedCountsTest, ProcessesThatMakeNothingWriteNothing) {
  (void)counts_.add("/bin/sh", 0, true);
  counts_.clear("/bin/true");
  EXPECT_FALSE(counts_.has_news());
}

TEST_F(UnsavedCountsTest, AFolderThatIsNotToBeTrustedIsNotRead) {
  (void)counts_.add("/bin/sh", 20, true);
  counts_.save();
  UnsavedCounts other{note()};
  EXPECT_EQ(other.add("/bin/sh", 1, false), 1U);
}

TEST_F(UnsavedCountsTest, TheNoteHoldsTheLargestOnly) {
  for (std::size_t i = 0; i <= UnsavedCounts::kMostLines; ++i) {
    (void)counts_.add("program " + std::to_string(i), i + 1, true);
  }
  counts_.save();
  const std::string text = read_note(note()).value_or("");
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'),
            static_cast<std::ptrdiff_t>(UnsavedCounts::kMostLines));
  EXPECT_EQ(found("program 0"), 0U);
  EXPECT_EQ(found("program 1"), 2U);
}

TEST_F(UnsavedCountsTest, DamagedNotesEndAtTheDamage) {
  const std::string line = kept_name("/bin/sh", "code") + " 20\n";
  for (const char* rest : {"x", "x y\n", "\n\n", "x -\nx 1\n"}) {
    std::ofstream{note()} << line << rest;
    EXPECT_EQ(found("/bin/sh"), 20U) << rest;
  }
  for (const std::string& begin : {std::string{"x y\n"}, std::string(20'000, 'x')}) {
    std::ofstream{note()} << begin << line;
    EXPECT_EQ(found("/bin/sh"), 0U) << begin;
  }
}

}  // namespace
}  // namespace backtrail::tracee::cache
