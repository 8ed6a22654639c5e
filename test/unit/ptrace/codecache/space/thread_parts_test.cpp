// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/space/thread_parts.hpp"

#include <set>

#include <gtest/gtest.h>

#include "arch/cpu/translator.hpp"
#include "test/unit/ptrace/codecache/recorder/stopped_child.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::cpu::translate;

class ThreadPartsTest : public ::testing::Test {
 protected:
  void SetUp() override { child_.take_space(); }
  CacheSpace& space() { return *child_.process().cache_space; }
  ThreadParts& parts() { return space().threads(); }
  std::size_t take() { return *parts().take(child_.thread()); }

  StoppedChild child_;
};

TEST_F(ThreadPartsTest, AreTakenOnceAndGivenBack) {
  std::set<std::size_t> taken;
  for (int i = 0; i < 20; ++i) EXPECT_TRUE(taken.insert(take()).second);
  const std::size_t middle = *std::next(taken.begin(), 10);
  parts().give_back(middle);
  EXPECT_EQ(take(), middle);
}

TEST_F(ThreadPartsTest, AreUsedUntilTheLastIsGivenBack) {
  const std::size_t second = take();
  parts().give_back(0);
  EXPECT_TRUE(parts().used());
  parts().give_back(second);
  EXPECT_FALSE(parts().used());
}

TEST_F(ThreadPartsTest, EveryOneCanBeTaken) {
  std::size_t count = 1;
  while (parts().take(child_.thread())) ++count;
  EXPECT_GT(count, kMaxThreads / 2);
  const auto refused = parts().take(child_.thread());
  ASSERT_FALSE(refused);
  EXPECT_TRUE(refused.error().is(TraceErrc::kBusy));
}

TEST_F(ThreadPartsTest, OfAThreadThatIsGoneHasNobodyInside) {
  const std::size_t part = take();
  parts().set_inside(part, true);
  EXPECT_TRUE(parts().anybody_inside());
  parts().give_back(part);
  EXPECT_FALSE(parts().anybody_inside());
}

TEST_F(ThreadPartsTest, HaveTheThreadsIds) {
  const ThreadMemory memory = space().memory().thread(take());
  EXPECT_EQ(memory.read(translate::Slot::kThreadId) & 0xffffffff,
            static_cast<std::uint64_t>(child_.thread().tid()));
}

TEST_F(ThreadPartsTest, StopByFaultFromThenOn) {
  const std::size_t before = take();
  const auto stops_by_fault = [&](std::size_t part) {
    return space().memory().thread(part).read(translate::Slot::kStopsByFault) != 0;
  };
  EXPECT_FALSE(stops_by_fault(before));
  parts().stop_by_fault();
  EXPECT_TRUE(stops_by_fault(before));
  EXPECT_TRUE(stops_by_fault(take()));
}

TEST_F(ThreadPartsTest, AreasAreUsedAgain) {
  const auto area = parts().take_area(child_.thread());
  ASSERT_TRUE(area);
  parts().give_area_back(*area);
  EXPECT_EQ(*parts().take_area(child_.thread()), *area);
  EXPECT_NE(*parts().take_area(child_.thread()), *area);
}

}  // namespace
}  // namespace backtrail::tracee::cache
