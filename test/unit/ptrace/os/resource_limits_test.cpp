// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/resource_limits.hpp"

#include <utility>

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace backtrail::tracee {
namespace {

TEST(ResourceLimits, AreThoseOfTheProcess) {
  using Pair = std::pair<LimitedResource, __rlimit_resource>;
  for (const auto& [resource, number] :
       {Pair{LimitedResource::kAddressSpace, RLIMIT_AS}, Pair{LimitedResource::kData, RLIMIT_DATA},
        Pair{LimitedResource::kLockedMemory, RLIMIT_MEMLOCK}}) {
    rlimit expected{};
    ASSERT_EQ(::getrlimit(number, &expected), 0);
    const auto found = limit_of(::getpid(), resource);
    ASSERT_TRUE(found);
    EXPECT_EQ(found->rlim_cur, expected.rlim_cur) << number;
    EXPECT_EQ(found->rlim_max, expected.rlim_max) << number;
  }
}

TEST(ResourceLimits, OfNoProcessAreUnknown) {
  EXPECT_FALSE(limit_of(-1, LimitedResource::kData));
}

}  // namespace
}  // namespace backtrail::tracee
