// SPDX-License-Identifier: Apache-2.0
#include "arch/base/result.hpp"

#include <cerrno>

#include <gtest/gtest.h>

namespace backtrail {
namespace {

Result<int> parse(bool good) {
  if (!good) return fail(TraceErrc::kMalformed, "parse", 7);
  return 5;
}

Result<int> twice(bool good) {
  BT_TRY(const int value, parse(good));
  return value * 2;
}

TEST(Result, CarriesTheValue) {
  EXPECT_EQ(twice(true).value(), 10);
}

TEST(Result, PropagatesTheError) {
  const Result<int> result = twice(false);
  ASSERT_FALSE(result);
  EXPECT_TRUE(result.error().is(TraceErrc::kMalformed));
  EXPECT_EQ(result.error().detail, 7U);
  EXPECT_EQ(result.error().message(), "parse: malformed data");
}

TEST(Result, NamesTheErrno) {
  EXPECT_EQ(errno_error(EPERM, "ptrace").message(), "ptrace: Operation not permitted (1)");
  EXPECT_TRUE(errno_error(EPERM, "ptrace").is(std::errc::operation_not_permitted));
}

}  // namespace
}  // namespace backtrail
