// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/kept_name.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

TEST(KeptName, DependsOnKeyKindAndBuild) {
  const std::string name = kept_name("/bin/true 1 2", "code", "build");
  EXPECT_EQ(name, kept_name("/bin/true 1 2", "code", "build"));
  EXPECT_NE(name, kept_name("/bin/true 1 3", "code", "build"));
  EXPECT_NE(name, kept_name("/bin/true 1 2", "like", "build"));
  EXPECT_NE(name, kept_name("/bin/true 1 2", "code", "another build"));
  EXPECT_TRUE(name.ends_with(".code"));
}

TEST(KeptName, IsOfThisBuild) {
  EXPECT_EQ(kept_name("key", "code"), kept_name("key", "code", build_identity()));
}

}  // namespace
}  // namespace backtrail::tracee::cache
