// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/start_filter.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): it is used

TEST(StartFilter, LetsAllPassUntilItIsInUse) {
  StartFilter filter;
  EXPECT_FALSE(filter.in_use());
  EXPECT_TRUE(filter.may_begin_at(0x1000_ta));
  filter.add(0x2000_ta);
  EXPECT_TRUE(filter.in_use());
  EXPECT_FALSE(filter.may_begin_at(0x1000_ta));
  filter.clear();
  EXPECT_FALSE(filter.in_use());
  EXPECT_TRUE(filter.may_begin_at(0x1000_ta));
}

TEST(StartFilter, NeverDeniesAStart) {
  StartFilter filter;
  constexpr std::uint64_t kStep = 0x1'2345'67ab'cdef;
  for (std::uint64_t i = 0; i < 1000; ++i) filter.add(TraceeAddr{i * kStep});
  for (std::uint64_t i = 0; i < 1000; ++i) {
    EXPECT_TRUE(filter.may_begin_at(TraceeAddr{i * kStep})) << i;
  }
}

TEST(StartFilter, DeniesTheNeighboursOfAStart) {
  StartFilter filter;
  filter.add(0x7f00'1234'5678_ta);
  for (std::uint64_t distance = 1; distance < 4096; ++distance) {
    EXPECT_FALSE(filter.may_begin_at(0x7f00'1234'5678_ta + distance)) << distance;
  }
}

}  // namespace
}  // namespace backtrail::tracee::cache
