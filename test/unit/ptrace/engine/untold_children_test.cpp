// SPDX-License-Identifier: Apache-2.0
// Which children the client does not know. How they run on is seen in test/integration.
#include "ptrace/engine/untold_children.hpp"

#include <gtest/gtest.h>

#include "runner_fixture.hpp"

namespace backtrail::tracee {
namespace {

class UntoldChildrenTest : public RunnerFixture {
 protected:
  void SetUp() override { child_.hidden = true; }

  BreakpointConditions conditions_;
  TaskRemoval removal_{tasks_.table(), conditions_, ctrl_c_, runner_};
  UntoldChildren children_{tasks_.table(), removal_};
  Thread& parent_ = tasks_.add_stopped(tasks_.add_process(100_id), 100_id);
  Process& child_ = tasks_.add_process(200_id);
};

TEST_F(UntoldChildrenTest, AreThoseOfPendingForks) {
  EXPECT_EQ(children_.of(parent_), nullptr);
  events_.put(parent_, {.kind = StopKind::kFork, .child = {200_id, 200_id}});
  EXPECT_EQ(children_.of(parent_), &child_);
  events_.put(parent_, {.kind = StopKind::kVfork, .child = {200_id, 200_id}});
  EXPECT_EQ(children_.of(parent_), &child_);
  events_.put(parent_, {.kind = StopKind::kTraceRequest, .child = {200_id, 200_id}});
  EXPECT_EQ(children_.of(parent_), nullptr) << "that event makes no process";
}

TEST_F(UntoldChildrenTest, AreToldWithTheFork) {
  events_.put(parent_, {.kind = StopKind::kFork, .child = {200_id, 200_id}});
  ASSERT_TRUE(events_.take());
  EXPECT_EQ(children_.of(parent_), nullptr);
  EXPECT_FALSE(child_.hidden);
}

TEST_F(UntoldChildrenTest, AreForgottenWithAForkThatIsNotTold) {
  events_.put(parent_, {.kind = StopKind::kFork, .child = {200_id, 200_id}});
  children_.settle(parent_);
  EXPECT_EQ(tasks_.table().find(200_id), nullptr);
  EXPECT_EQ(children_.of(parent_), nullptr);
  children_.settle(parent_);
}

}  // namespace
}  // namespace backtrail::tracee
