// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/breakpoint_conditions.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

constexpr TraceeAddr kHere{0x1000};
constexpr TraceeAddr kThere{0x2000};
constexpr auto kSoftware = BreakpointKind::kSoftware;
constexpr auto kHardware = BreakpointKind::kHardware;

bool never(ThreadId /*id*/) {
  return false;
}

TEST(BreakpointConditions, HoldWhereThereAreNone) {
  const BreakpointConditions conditions;
  EXPECT_TRUE(conditions.hold({1, 1}, kSoftware, kHere));
}

TEST(BreakpointConditions, BelongToOneBreakpoint) {
  BreakpointConditions conditions;
  conditions.set(1, kSoftware, kHere, never);
  EXPECT_FALSE(conditions.hold({1, 2}, kSoftware, kHere));
  EXPECT_TRUE(conditions.hold({1, 2}, kHardware, kHere));
  EXPECT_TRUE(conditions.hold({1, 2}, kSoftware, kThere));
  EXPECT_TRUE(conditions.hold({2, 2}, kSoftware, kHere)) << "of another process";
}

TEST(BreakpointConditions, AreAskedForTheThread) {
  BreakpointConditions conditions;
  conditions.set(1, kSoftware, kHere, [](ThreadId id) { return id.tid == 3; });
  EXPECT_FALSE(conditions.hold({1, 2}, kSoftware, kHere));
  EXPECT_TRUE(conditions.hold({1, 3}, kSoftware, kHere));
}

TEST(BreakpointConditions, AreReplacedAndRemoved) {
  BreakpointConditions conditions;
  conditions.set(1, kSoftware, kHere, never);
  conditions.set(1, kSoftware, kHere, [](ThreadId) { return true; });
  EXPECT_TRUE(conditions.hold({1, 1}, kSoftware, kHere));
  conditions.set(1, kSoftware, kHere, never);
  conditions.set(1, kSoftware, kHere, {});
  EXPECT_TRUE(conditions.hold({1, 1}, kSoftware, kHere)) << "the breakpoint has none now";
  conditions.set(1, kSoftware, kHere, never);
  conditions.remove(1, kSoftware, kHere);
  EXPECT_TRUE(conditions.hold({1, 1}, kSoftware, kHere));
}

TEST(BreakpointConditions, GoWithTheirProcess) {
  BreakpointConditions conditions;
  conditions.set(1, kSoftware, kHere, never);
  conditions.set(1, kHardware, kThere, never);
  conditions.set(2, kSoftware, kHere, never);
  conditions.forget(1);
  EXPECT_TRUE(conditions.hold({1, 1}, kSoftware, kHere));
  EXPECT_TRUE(conditions.hold({1, 1}, kHardware, kThere));
  EXPECT_FALSE(conditions.hold({2, 2}, kSoftware, kHere));
}

}  // namespace
}  // namespace backtrail::tracee
