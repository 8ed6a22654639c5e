// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/window_memory.hpp"

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

using Place = WindowMemory::Place;

/// Accesses of 8 bytes, one a step, whose values are variables of their own.
class WindowMemoryTest : public testing::Test {
 protected:
  WindowMemoryTest() {
    for (int i = 0; i < 4; ++i) program_.run({0x90});
    graph_ = std::make_unique<ValueGraph>(program_.window, 0, program_.models, program_);
  }
  void add(cpu::AccessKind kind, std::uint32_t step, Known value) {
    const auto base = static_cast<Var>(graph_->known.size());
    graph_->known.resize(base + 2);
    graph_->known[base + 1] = value;
    graph_->accesses.push_back(
        {.kind = kind, .size = 8, .step = step, .base = base, .value = base + 1, .offset = 0});
  }

  Program program_;
  std::unique_ptr<ValueGraph> graph_;
};

TEST_F(WindowMemoryTest, JudgesAddressesByTheirPages) {
  for (std::uint32_t step = 0; step < 4; ++step) add(cpu::AccessKind::kLoad, step, {});
  WindowMemory memory{*graph_, program_, {{.step = 2, .begin = kStack, .end = kStack + 4096}}};
  EXPECT_EQ(memory.place(0), Place::kOpen);
  memory.settle(0, kData);
  EXPECT_EQ(memory.place(0), Place::kListed);
  EXPECT_EQ(memory.address(0), kData);
  memory.settle(1, kStack);
  EXPECT_EQ(memory.place(1), Place::kUnstable) << "mapped by step 2";
  memory.settle(3, kStack);
  EXPECT_EQ(memory.place(3), Place::kListed);
  memory.settle(2, kCode);
  EXPECT_EQ(memory.place(2), Place::kConstant);
}

TEST_F(WindowMemoryTest, AStoreIsABarrierUntilItsPlaceIsKnown) {
  add(cpu::AccessKind::kStore, 0, {});
  WindowMemory memory{*graph_, program_, {}};
  EXPECT_TRUE(memory.barriers().contains(0));
  EXPECT_TRUE(memory.bound(0, kData, kData + 15));
  EXPECT_FALSE(memory.bound(0, kData, kData + 15)) << "known";
  EXPECT_EQ(memory.barriers().next(0, kStack), Barriers::kNone);
  memory.settle(0, kData);
  EXPECT_FALSE(memory.barriers().contains(0));
}

TEST_F(WindowMemoryTest, BytesSurviveAStoreOfOthers) {
  add(cpu::AccessKind::kStore, 0, cpu::known(0x1111'1111'1111'1111));
  WindowMemory memory{*graph_, program_, {}};
  EXPECT_EQ(memory.survivors(0, 1, kData, cpu::known(0x2222'2222'2222'2211)),
            0xffff'ffff'ffff'ff00U);
}

TEST_F(WindowMemoryTest, ContentIsWhatTheAccessKnowsOfItsBytes) {
  add(cpu::AccessKind::kLoad, 0, cpu::known(0x8877'6655'4433'2211));
  WindowMemory memory{*graph_, program_, {}};
  memory.settle(0, kData + 4);
  const auto parts = memory.parts(0);
  EXPECT_EQ(parts[0].granule, kData);
  EXPECT_EQ(parts[0].bits, 0xffff'ffff'0000'0000U);
  EXPECT_EQ(memory.content(0, kData).value, 0x4433'2211'0000'0000U);
  EXPECT_EQ(memory.content(0, kData + 8).value, 0x8877'6655U);
}

}  // namespace
}  // namespace backtrail::decoder::values
