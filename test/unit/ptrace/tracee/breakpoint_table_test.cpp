// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/breakpoint_table.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "test/unit/ptrace/fake_memory.hpp"

namespace backtrail::tracee {
namespace {

using literals::operator""_ta;  // NOLINT(misc-unused-using-decls): literals count as unused
using Bytes = std::vector<std::uint8_t>;

class BreakpointTableTest : public testing::Test {
 protected:
  FakeMemory memory_{0x1000_ta, {0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17}};
  BreakpointTable table_{memory_};
};

TEST_F(BreakpointTableTest, InsertsAndRemoves) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  EXPECT_EQ(memory_.at(0x1002_ta), 0xcc);
  EXPECT_TRUE(table_.contains(0x1002_ta));
  EXPECT_EQ(table_.original(0x1002_ta), 0x12);
  ASSERT_TRUE(table_.insert(0x1002_ta));  // a second call inserts nothing
  EXPECT_EQ(table_.size(), 1U);
  EXPECT_EQ(table_.original(0x1002_ta), 0x12);
  ASSERT_TRUE(table_.remove(0x1002_ta));
  EXPECT_EQ(memory_.at(0x1002_ta), 0x12);
  EXPECT_TRUE(table_.remove(0x1002_ta).error().is(TraceErrc::kNotFound));
}

TEST_F(BreakpointTableTest, ReportsPlacesItCannotUse) {
  const auto unmapped = table_.insert(0x2000_ta);
  ASSERT_FALSE(unmapped);
  EXPECT_TRUE(unmapped.error().is(TraceErrc::kUnreadable));
  EXPECT_FALSE(table_.contains(0x2000_ta));
  memory_.set_read_only(true);
  EXPECT_FALSE(table_.insert(0x1001_ta));
  EXPECT_TRUE(table_.empty());
  EXPECT_EQ(memory_.at(0x1001_ta), 0x11);
}

TEST_F(BreakpointTableTest, HidesItselfFromReaders) {
  ASSERT_TRUE(table_.insert(0x1000_ta));
  ASSERT_TRUE(table_.insert(0x1003_ta));
  ASSERT_TRUE(table_.insert(0x1007_ta));
  Bytes all(8);
  EXPECT_EQ(table_.read(0x1000_ta, all), 8U);
  EXPECT_EQ(all, (Bytes{0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x16, 0x17}));
  Bytes some(3);
  EXPECT_EQ(table_.read(0x1003_ta, some), 3U);
  EXPECT_EQ(some, (Bytes{0x13, 0x14, 0x15}));
  EXPECT_EQ(table_.read(0x1006_ta, all), 2U);  // cut at the end of memory
  EXPECT_EQ(all[1], 0x17);
}

TEST_F(BreakpointTableTest, ShowsTheProgramsOwnInt3) {
  memory_.set(0x1004_ta, 0xcc);
  Bytes byte(1);
  table_.read(0x1004_ta, byte);
  EXPECT_EQ(byte[0], 0xcc);
  ASSERT_TRUE(table_.insert(0x1004_ta));
  table_.read(0x1004_ta, byte);
  EXPECT_EQ(byte[0], 0xcc);
  ASSERT_TRUE(table_.remove(0x1004_ta));
  EXPECT_EQ(memory_.at(0x1004_ta), 0xcc);
}

TEST_F(BreakpointTableTest, WritesBelowTheBreakpoint) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  const Bytes data{0xa1, 0xa2, 0xa3};
  ASSERT_TRUE(table_.write(0x1001_ta, data));
  EXPECT_EQ(memory_.at(0x1001_ta), 0xa1);
  EXPECT_EQ(memory_.at(0x1002_ta), 0xcc);
  EXPECT_EQ(memory_.at(0x1003_ta), 0xa3);
  Bytes shown(3);
  table_.read(0x1001_ta, shown);
  EXPECT_EQ(shown, data);
  ASSERT_TRUE(table_.remove(0x1002_ta));
  EXPECT_EQ(memory_.at(0x1002_ta), 0xa2);
}

TEST_F(BreakpointTableTest, KeepsTheByteWhenAWriteFails) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  memory_.set_read_only(true);
  const Bytes data{0xa2};
  EXPECT_FALSE(table_.write(0x1002_ta, data));
  EXPECT_EQ(table_.original(0x1002_ta), 0x12);
}

TEST_F(BreakpointTableTest, LiftsAndReinserts) {
  ASSERT_TRUE(table_.insert(0x1001_ta));
  ASSERT_TRUE(table_.insert(0x1002_ta));
  ASSERT_TRUE(table_.lift(0x1001_ta));
  EXPECT_EQ(memory_.at(0x1001_ta), 0x11);
  EXPECT_TRUE(table_.contains(0x1001_ta));
  EXPECT_FALSE(table_.inserted(0x1001_ta));
  ASSERT_TRUE(table_.lift_all());
  EXPECT_EQ(memory_.at(0x1002_ta), 0x12);
  // Bytes written while it is lifted are the program's bytes afterwards.
  const Bytes data{0x77};
  ASSERT_TRUE(table_.write(0x1002_ta, data));
  EXPECT_EQ(memory_.at(0x1002_ta), 0x77);
  ASSERT_TRUE(table_.reinsert_all());
  EXPECT_EQ(memory_.at(0x1001_ta), 0xcc);
  EXPECT_EQ(memory_.at(0x1002_ta), 0xcc);
  ASSERT_TRUE(table_.remove(0x1002_ta));
  EXPECT_EQ(memory_.at(0x1002_ta), 0x77);
  EXPECT_TRUE(table_.lift(0x1005_ta).error().is(TraceErrc::kNotFound));
  EXPECT_TRUE(table_.reinsert(0x1005_ta).error().is(TraceErrc::kNotFound));
}

TEST_F(BreakpointTableTest, NeverRestoresAStaleByte) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  memory_.set(0x1002_ta, 0x99);  // the program has mapped something else here
  Bytes byte(1);
  table_.read(0x1002_ta, byte);
  EXPECT_EQ(byte[0], 0x99);
  ASSERT_TRUE(table_.remove(0x1002_ta));
  EXPECT_EQ(memory_.at(0x1002_ta), 0x99);

  ASSERT_TRUE(table_.insert(0x1003_ta));
  memory_.set(0x1003_ta, 0x98);
  ASSERT_TRUE(table_.insert(0x1003_ta));  // set anew over the new code
  EXPECT_EQ(memory_.at(0x1003_ta), 0xcc);
  EXPECT_EQ(table_.original(0x1003_ta), 0x98);
}

TEST_F(BreakpointTableTest, ForgetsMemoryThatIsGoneAndSaysSo) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  memory_.unmap();
  EXPECT_TRUE(table_.remove(0x1002_ta).error().is(TraceErrc::kUnreadable));
  EXPECT_TRUE(table_.empty());
}

TEST_F(BreakpointTableTest, GoesOnAfterAFailure) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  ASSERT_TRUE(table_.insert(0x1003_ta));
  ASSERT_TRUE(table_.lift_all());
  memory_.unmap();
  EXPECT_TRUE(table_.reinsert_all().error().is(TraceErrc::kUnreadable));
  EXPECT_EQ(table_.size(), 2U);
  EXPECT_FALSE(table_.inserted(0x1003_ta));
}

TEST_F(BreakpointTableTest, IsCopiedForAForkedChild) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  FakeMemory child = memory_;
  BreakpointTable copy = table_.copy_for(child);
  ASSERT_TRUE(copy.lift_all());
  EXPECT_EQ(child.at(0x1002_ta), 0x12);
  EXPECT_EQ(memory_.at(0x1002_ta), 0xcc);
  table_.forget_all();
  EXPECT_TRUE(table_.empty());
  EXPECT_EQ(memory_.at(0x1002_ta), 0xcc);
  EXPECT_TRUE(copy.contains(0x1002_ta));
}

TEST_F(BreakpointTableTest, TakesOverThoseOfAProcessWithTheSameMemory) {
  ASSERT_TRUE(table_.insert(0x1001_ta));
  BreakpointTable other = table_.copy_for(memory_);
  ASSERT_TRUE(other.insert(0x1002_ta));
  ASSERT_TRUE(other.insert(0x1003_ta));
  const std::array<std::uint8_t, 1> overwritten{0x77};
  ASSERT_TRUE(memory_.write(0x1003_ta, overwritten));
  EXPECT_EQ(table_.take_over(other), std::vector{0x1002_ta});
  EXPECT_EQ(table_.addresses(), (std::vector{0x1001_ta, 0x1002_ta}));
  ASSERT_TRUE(table_.remove(0x1002_ta));
  EXPECT_EQ(memory_.at(0x1002_ta), 0x12);
}

TEST_F(BreakpointTableTest, TakesOverWhatItHadLifted) {
  ASSERT_TRUE(table_.insert(0x1002_ta));
  ASSERT_TRUE(table_.lift_all());
  BreakpointTable other = table_.copy_for(memory_);
  ASSERT_TRUE(other.insert(0x1002_ta));
  EXPECT_TRUE(table_.take_over(other).empty());
  EXPECT_TRUE(table_.inserted(0x1002_ta));
  ASSERT_TRUE(table_.reinsert_all());
  ASSERT_TRUE(table_.remove(0x1002_ta));
  EXPECT_EQ(memory_.at(0x1002_ta), 0x12);
}

TEST(BreakpointTable, WorksAtTheEndOfTheAddressSpace) {
  const TraceeAddr last{~std::uint64_t{0}};
  FakeMemory memory{last - 1, {1, 2}};
  BreakpointTable table{memory};
  ASSERT_TRUE(table.insert(last));
  Bytes bytes(2);
  EXPECT_EQ(table.read(last - 1, bytes), 2U);
  EXPECT_EQ(bytes, (Bytes{1, 2}));
}

}  // namespace
}  // namespace backtrail::tracee
