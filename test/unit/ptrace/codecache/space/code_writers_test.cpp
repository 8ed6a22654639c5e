// SPDX-License-Identifier: Apache-2.0
// Which processes use the same memory. Who writes code through files is seen in test/integration.
#include "ptrace/codecache/space/code_writers.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/ptrace/engine/fake_tasks.hpp"

namespace backtrail::tracee::cache {
namespace {

using testing::ElementsAre;
using testing::ElementsAreArray;
using testing::IsEmpty;
using testing::UnorderedElementsAre;

class CodeWritersTest : public testing::Test {
 protected:
  void SetUp() override {
    for (Process* process : {&first_, &second_, &third_}) writers_.add(*process);
  }

  FakeTasks tasks_;
  Process& first_ = tasks_.add_process(100'000'001);
  Process& second_ = tasks_.add_process(100'000'002);
  Process& third_ = tasks_.add_process(100'000'003);
  CodeWriters writers_;
};

TEST_F(CodeWritersTest, AProcessUsesItsMemoryAlone) {
  EXPECT_THAT(writers_.users_of_memory_of(first_), ElementsAre(&first_));
  EXPECT_FALSE(writers_.shares_memory(first_));
}

TEST_F(CodeWritersTest, ChildrenOfChildrenShareTheSameMemory) {
  writers_.note_shared_memory(first_, second_);
  EXPECT_THAT(writers_.users_of_memory_of(third_), ElementsAre(&third_));
  writers_.note_shared_memory(second_, third_);
  for (Process* process : {&first_, &second_, &third_}) {
    EXPECT_TRUE(writers_.shares_memory(*process));
    EXPECT_THAT(writers_.users_of_memory_of(*process),
                UnorderedElementsAre(&first_, &second_, &third_));
  }
}

TEST_F(CodeWritersTest, AnExecGivesAProcessItsOwnMemory) {
  writers_.note_shared_memory(first_, second_);
  writers_.note_shared_memory(second_, third_);
  writers_.note_own_memory(first_);
  EXPECT_FALSE(writers_.shares_memory(first_));
  EXPECT_THAT(writers_.users_of_memory_of(second_), UnorderedElementsAre(&second_, &third_));
}

TEST_F(CodeWritersTest, WhatAProcessLeavesIsForThoseThatStay) {
  const std::vector<MemoryRange> left{{TraceeAddr{0x1000}, TraceeAddr{0x3000}}};
  writers_.note_left_memory(first_, left);
  EXPECT_THAT(writers_.left_memory(first_), IsEmpty()) << "it has its memory for itself";
  writers_.note_shared_memory(first_, second_);
  writers_.note_left_memory(second_, left);
  writers_.remove(second_);
  EXPECT_FALSE(writers_.shares_memory(first_));
  EXPECT_THAT(writers_.users_of_memory_of(first_), ElementsAre(&first_));
  EXPECT_THAT(writers_.left_memory(first_), ElementsAreArray(left));
  writers_.note_shared_memory(first_, third_);
  EXPECT_THAT(writers_.left_memory(third_), ElementsAreArray(left));
  EXPECT_EQ(writers_.take_left_memory(third_), left);
  EXPECT_THAT(writers_.left_memory(first_), IsEmpty());
  EXPECT_TRUE(writers_.shares_memory(first_));
}

TEST_F(CodeWritersTest, WhatAProcessLeavesGoesWithTheLastUser) {
  writers_.note_shared_memory(first_, second_);
  writers_.note_left_memory(second_, std::vector{MemoryRange{TraceeAddr{1}, TraceeAddr{2}}});
  writers_.remove(second_);
  writers_.note_own_memory(first_);
  EXPECT_THAT(writers_.left_memory(first_), IsEmpty());
}

TEST_F(CodeWritersTest, WhoIsLeftAloneSharesNothing) {
  writers_.note_shared_memory(first_, second_);
  writers_.remove(first_);
  EXPECT_FALSE(writers_.shares_memory(second_));
  writers_.note_shared_memory(second_, third_);
  EXPECT_THAT(writers_.users_of_memory_of(third_), UnorderedElementsAre(&second_, &third_));
}

}  // namespace
}  // namespace backtrail::tracee::cache
