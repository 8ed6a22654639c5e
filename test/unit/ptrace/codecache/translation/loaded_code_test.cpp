// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/loaded_code.hpp"

#include <gtest/gtest.h>

#include "test/unit/ptrace/codecache/translation/fake_code_memory.hpp"
#include "test/unit/ptrace/codecache/translation/loaded_example.hpp"

namespace backtrail::tracee::cache {
namespace {

using Example = LoadedExample;

constexpr std::uint64_t kMiss = 0x10;

class LoadedCodeTest : public testing::Test {
 protected:
  LoadedCodeTest() {
    memory_.fill_table(memory_.code());
    superblocks_.load(kept_);
    const auto exits = std::make_shared<decoder::ExitTable>(kept_->exits(kept_));
    loaded_links_.load(kept_, exits);
    loaded_.load(kept_, exits);
    links_.point(Example::kLinks[0], memory_.code() + Example::kCodeOfB);
    links_.point(Example::kLinks[1], memory_.code() + kMiss);
    links_.point(Example::kLinks[2], memory_.code() + kMiss);
    links_.point(Example::kEntryOfB - CodeLinks::kBytes, memory_.code());
  }
  void activate(const arch::x86::translate::Branch& module) {
    loaded_.activate(module, [this](TraceeAddr start) { return loaded_.translation(start); });
  }
  [[nodiscard]] std::uint64_t target_of_exit(std::size_t exit) const {
    return links_.target_of(Example::kLinks.at(exit));
  }

  FakeCodeMemory memory_;
  CodeLinks links_{memory_.host_code(), memory_.code()};
  Superblocks superblocks_;
  IndirectBranchTable table_{memory_.entries(), links_, superblocks_, memory_.code()};
  LoadedLinks loaded_links_{links_, superblocks_, memory_.code() + kMiss};
  LoadedCode loaded_{table_, loaded_links_};
  std::shared_ptr<const PersistentCode> kept_ = Example::make();
};

TEST_F(LoadedCodeTest, IsUsedOnceItsModuleIsActive) {
  EXPECT_TRUE(loaded_.is_usable());
  EXPECT_EQ(loaded_.translation(Example::kA), std::nullopt);
  EXPECT_EQ(table_.find(Example::kB), nullptr);
  activate(Example::kFirst);
  EXPECT_EQ(loaded_.translation(Example::kA), Example::kCodeOfA);
  EXPECT_EQ(loaded_.translation(Example::kA + 1), std::nullopt);
  EXPECT_EQ(loaded_.translation(Example::kC), std::nullopt);
  EXPECT_NE(table_.find(Example::kB), nullptr);
}

TEST_F(LoadedCodeTest, ModulesLeadToEachOtherOnceBothAreActive) {
  activate(Example::kFirst);
  EXPECT_EQ(target_of_exit(1), kMiss);
  activate(Example::kSecond);
  EXPECT_EQ(target_of_exit(1), Example::kCodeOfC);
  EXPECT_TRUE(loaded_.deactivate(Example::kC, Example::kC + 1));
  EXPECT_EQ(target_of_exit(1), kMiss);
  EXPECT_EQ(loaded_.translation(Example::kC), std::nullopt);
  EXPECT_EQ(target_of_exit(0), Example::kCodeOfB);
}

TEST_F(LoadedCodeTest, AModuleGoesAndComesBack) {
  activate(Example::kFirst);
  EXPECT_FALSE(loaded_.deactivate(Example::kSecond.first, Example::kSecond.second));
  EXPECT_TRUE(loaded_.deactivate(Example::kFirst.first, Example::kFirst.first + 1));
  EXPECT_EQ(loaded_.translation(Example::kA), std::nullopt);
  EXPECT_EQ(table_.find(Example::kB), nullptr);
  EXPECT_EQ(target_of_exit(0), kMiss);
  activate(Example::kFirst);
  EXPECT_EQ(loaded_.translation(Example::kA), Example::kCodeOfA);
  EXPECT_NE(table_.find(Example::kB), nullptr);
  EXPECT_EQ(target_of_exit(0), Example::kCodeOfB);
}

TEST_F(LoadedCodeTest, IsGivenUpForGood) {
  activate(Example::kFirst);
  loaded_.clear();
  EXPECT_FALSE(loaded_.is_usable());
  EXPECT_EQ(loaded_.translation(Example::kA), std::nullopt);
  EXPECT_FALSE(loaded_.deactivate(Example::kFirst.first, Example::kFirst.second));
  EXPECT_EQ(loaded_.code(), kept_);
}

}  // namespace
}  // namespace backtrail::tracee::cache
