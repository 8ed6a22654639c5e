// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_history.hpp"

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

const Bytes nop{0x90};

/// Windows of 8 steps begin with one more.
class ValueHistoryTest : public ::testing::Test {
 protected:
  void run_nops(unsigned count) {
    for (unsigned i = 0; i < count; ++i) p.run(nop);
  }
  ValueHistory history() { return p.history(8); }

  Program p;
};

TEST_F(ValueHistoryTest, AWindowKnowsWhatFollowsFromTheStepBeforeIt) {
  p.run(nop);
  p.run({0xbb, 0x07, 0x00, 0x00, 0x00});  // mov $7, %ebx
  run_nops(7);
  p.run({0xbb, 0x00, 0x00, 0x00, 0x00});  // mov $0, %ebx
  ValueHistory values = history();
  EXPECT_EQ(values.reg(5, cpu::kRbx), cpu::known(7));
  EXPECT_EQ(values.windows(), 1U);
  EXPECT_EQ(values.reg(1, cpu::kRbx).mask, 0U);
  EXPECT_EQ(values.windows(), 2U);
  EXPECT_EQ(values.horizon(), 0U);
}

TEST_F(ValueHistoryTest, AllRegistersAreThoseAskedForOneByOne) {
  for (std::uint8_t i = 0; i < 100; ++i) {
    p.run({0xbb, i, 0x00, 0x00, 0x00});     // mov $i, %ebx
    p.run({0x48, 0x01, 0xd8});              // add %rbx, %rax
    p.run({0x66, 0x48, 0x0f, 0x6e, 0xc3});  // movq %rbx, %xmm0
  }
  ValueHistory values = p.history(200);
  std::uint64_t known = 0;
  for (std::size_t position = 0; position <= 301; ++position) {
    const Registers all = values.registers(position);
    for (Slot slot = 0; slot < cpu::kSlotCount; ++slot) {
      ASSERT_EQ(all[slot], values.reg(position, slot)) << position << ' ' << slot;
      known += all[slot].mask != 0 ? 1U : 0U;
    }
  }
  EXPECT_GT(known, 300U);
}

/// The window before it knows what the call is.
TEST_F(ValueHistoryTest, AnUnknownCallBeforeAWindowHidesNothing) {
  p.run({0x48, 0xc7, 0x04, 0x25, 0x00, 0x00, 0x60, 0x00, 5, 0, 0, 0});  // movq $5, kData
  p.run({0xb8, 0x27, 0x00, 0x00, 0x00});                                // mov $39, %eax: getpid
  p.run(system_call);
  run_nops(8);
  p.memory[kData] = 5;
  ValueHistory values = history();
  const auto found = values.last_write(11, TraceeAddr{kData}, 8);
  EXPECT_TRUE(found && found->step == 0);
  EXPECT_EQ(values.horizon(), 0U);
}

}  // namespace
}  // namespace backtrail::decoder::values
