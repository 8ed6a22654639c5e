// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/program/code_modules.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

ExecutableMap::Range range(std::uint64_t begin, std::uint64_t end, std::uint64_t inode) {
  return {.begin = TraceeAddr{begin}, .end = TraceeAddr{end}, .inode = inode, .path = "/lib"};
}

CodeModule module_of(const ExecutableMap::Range& range) {
  return {.begin = range.begin, .end = range.end, .identity = range.inode};
}

class Modules : public testing::Test {
 protected:
  std::vector<CodeModule> add(const ExecutableMap::Range& range) {
    return modules_.add(range, module_of(range));
  }
  std::vector<CodeModule> lose(std::uint64_t begin, std::uint64_t end) {
    return modules_.lose(TraceeAddr{begin}, TraceeAddr{end});
  }
  CodeModules modules_;
  ExecutableMap::Range one_ = range(0x1000, 0x3000, 1);
  ExecutableMap::Range two_ = range(0x2000, 0x4000, 2);
};

TEST_F(Modules, AreKnownAsTheyWere) {
  add(one_);
  EXPECT_TRUE(modules_.knows(one_));
  auto grown = one_;
  grown.end = TraceeAddr{0x4000};
  EXPECT_FALSE(modules_.knows(grown));
  EXPECT_FALSE(modules_.knows(two_));
}

TEST_F(Modules, ThatGoAreKeptUntilAnotherTakesTheirPlace) {
  add(one_);
  EXPECT_TRUE(lose(0x4000, 0x5000).empty());
  EXPECT_EQ(lose(0x2fff, 0x3000), std::vector{module_of(one_)});
  EXPECT_FALSE(modules_.knows(one_));
  EXPECT_TRUE(modules_.kept().present.empty());
  EXPECT_EQ(modules_.kept().gone, std::vector{module_of(one_)});
  EXPECT_EQ(add(two_), std::vector{module_of(one_)});
  EXPECT_TRUE(modules_.kept().gone.empty());
  EXPECT_EQ(modules_.kept().present, std::vector{module_of(two_)});
}

TEST_F(Modules, ThatComeBackAreThere) {
  add(one_);
  lose(0x1000, 0x3000);
  EXPECT_TRUE(add(one_).empty());
  EXPECT_TRUE(modules_.kept().gone.empty());
  EXPECT_EQ(modules_.kept().present.size(), 1U);
}

/// The middle of a file's mapping is replaced by another file.
TEST_F(Modules, OfWhichPartsComeBackKeepTheRestUntilAnotherTakesItsPlace) {
  add(range(0x1000, 0x4000, 1));
  lose(0x2000, 0x3000);
  EXPECT_TRUE(add(range(0x1000, 0x2000, 1)).empty());
  CodeModule rest = module_of(range(0x2000, 0x4000, 1));
  rest.file_offset = 0x1000;
  EXPECT_EQ(modules_.kept().gone, std::vector{rest});
  EXPECT_EQ(add(range(0x2000, 0x3000, 2)), std::vector{rest});
  EXPECT_TRUE(modules_.kept().gone.empty());
}

TEST_F(Modules, ThatAreNotKeptAreKnownAndDisplaceNothing) {
  add(one_);
  lose(0x1000, 0x3000);
  EXPECT_TRUE(modules_.add(one_, std::nullopt).empty());
  EXPECT_TRUE(modules_.knows(one_));
  EXPECT_FALSE(modules_.keeps(one_.begin, one_.end));
  EXPECT_TRUE(modules_.kept().present.empty());
  EXPECT_EQ(modules_.kept().gone.size(), 1U);
}

TEST_F(Modules, AreLostWithWhatIsNotMappedAnyMore) {
  add(one_);
  const auto far = range(0x9000, 0xa000, 3);
  add(far);
  EXPECT_EQ(modules_.lose_all_but({far}), std::vector{module_of(one_)});
  EXPECT_TRUE(modules_.keeps(TraceeAddr{0x9fff}, TraceeAddr{0xb000}));
  EXPECT_FALSE(modules_.keeps(TraceeAddr{0xa000}, TraceeAddr{0xb000}));
}

}  // namespace
}  // namespace backtrail::tracee::cache
