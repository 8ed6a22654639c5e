// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/trap_action.hpp"

#include <bit>
#include <csignal>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

std::uint64_t ignore() {
  return std::bit_cast<std::uint64_t>(SIG_IGN);
}

TEST(TrapAction, IgnoredSignalsStayIgnoredInChildrenAndNewPrograms) {
  TrapAction action;
  action.learn({.handler = ignore()});
  EXPECT_EQ(action.inherited().ignored, true);
  EXPECT_FALSE(action.inherited().action) << "its flags may be others";
}

TEST(TrapAction, HandlersMayBeReset) {
  TrapAction action;
  action.learn({.handler = 0x401000});
  EXPECT_EQ(action.inherited().ignored, false);
  EXPECT_FALSE(action.inherited().action);
}

TEST(TrapAction, NothingIsInheritedThatIsNotKnown) {
  TrapAction action;
  EXPECT_FALSE(action.inherited().ignored);
  action.learn({.handler = ignore()});
  action.damaged = true;
  EXPECT_FALSE(action.inherited().ignored) << "the kernel's own may be the default action";
  EXPECT_FALSE(action.inherited().damaged);
}

}  // namespace
}  // namespace backtrail::tracee
