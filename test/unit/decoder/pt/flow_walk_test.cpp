// SPDX-License-Identifier: Apache-2.0
#include "decoder/pt/flow_walk.hpp"

#include <vector>

#include <gtest/gtest.h>

#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::test {
namespace {

using namespace literals;
using namespace decoder;

class Nobody : public TraceConsumer {
 public:
  void consume(std::span<const Record> /*records*/) override {}
};

class FlowWalkTest : public testing::Test {
 protected:
  void SetUp() override { graph_.refresh(); }
  /// Follows one short TNT packet.
  bool follow(std::uint8_t packet) {
    TntBytes bytes{.at = &packet, .end = &packet + 1};
    return walk_.follow(bytes) && bytes.at == bytes.end;
  }
  [[nodiscard]] std::vector<Record> records() const {
    return {batch_.all().begin(), batch_.all().end()};
  }

  // 1000: jz 1003; 1002: nop; 1003: call 1009; 1008: nop; 1009: jmp *%rax
  FlatCode code_{0x1000_ta,
                 {0x74, 0x01, 0x90, 0xe8, 0x01, 0x00, 0x00, 0x00, 0x90, 0xff, 0xe0, 0x90}};
  FlowGraph graph_{code_};
  Nobody nobody_;
  RecordBatch batch_{nobody_};
  FlowWalk walk_{graph_, batch_};
};

TEST_F(FlowWalkTest, GoesWhereABitLeads) {
  walk_.put(0x1000_ta, 0);
  ASSERT_TRUE(follow(0b110));  // taken
  EXPECT_EQ(records(), (std::vector{branch(0x1000_ta, 0x1003_ta)}));
  EXPECT_EQ(walk_.held(), 1U) << "nothing has run at the target";
  walk_.drop_held();
  EXPECT_TRUE(records().empty());
}

TEST_F(FlowWalkTest, TakesTheNextIndirectBranchToATip) {
  walk_.put(0x1003_ta, 0);
  ASSERT_TRUE(walk_.take_tip(0x100b_ta));
  EXPECT_EQ(records(), (std::vector{branch(0x1003_ta, 0x1009_ta), branch(0x1009_ta, 0x100b_ta)}));
  EXPECT_EQ(walk_.edge_begin(), 0x100b_ta);
}

TEST_F(FlowWalkTest, NeedsABitAtAConditionalBranch) {
  walk_.put(0x1000_ta, 0);
  EXPECT_FALSE(walk_.take_tip(0x100b_ta));
  walk_.put(0x1000_ta, 0);
  EXPECT_FALSE(walk_.walk_to(0x1003_ta));
}

TEST_F(FlowWalkTest, WalksWithoutPackets) {
  walk_.put(0x1003_ta, 0);
  EXPECT_TRUE(walk_.walk_to(0x1009_ta));
  EXPECT_EQ(records(), (std::vector{branch(0x1003_ta, 0x1009_ta)}));
  EXPECT_EQ(walk_.held(), 1U);
}

TEST_F(FlowWalkTest, IsNowhereAfterItLeaves) {
  walk_.put(0x1000_ta, 0);
  EXPECT_TRUE(walk_.on());
  walk_.leave();
  EXPECT_FALSE(walk_.on());
}

}  // namespace
}  // namespace backtrail::test
