// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_queue.hpp"

#include <gtest/gtest.h>

#include "test/unit/decoder/values/program.hpp"

namespace backtrail::decoder::values {
namespace {

using Kind = ValueQueue::Kind;

/// A graph of two variables: an access uses both, a node the second.
class ValueQueueTest : public testing::Test {
 protected:
  void SetUp() override {
    one_ = static_cast<Var>(graph_.known.size());
    graph_.known.resize(one_ + 2);
    graph_.nodes = {Node{.relation = {}, .count = 1, .vars = {one_ + 1}}};
    graph_.accesses = {Access{.base = one_, .value = one_ + 1}};
  }
  std::vector<std::pair<Kind, std::uint32_t>> all(ValueQueue& queue) {
    std::vector<std::pair<Kind, std::uint32_t>> items;
    while (const auto item = queue.next()) items.emplace_back(item->kind, item->index);
    return items;
  }

  Program program_;
  ValueGraph graph_{program_.window, 0, program_.models, program_};
  Var one_ = 0;
};

TEST_F(ValueQueueTest, BeginsWithEverythingLastFirst) {
  ValueQueue queue{graph_, {}};
  const std::vector<std::pair<Kind, std::uint32_t>> expected{{Kind::kAccess, 0}, {Kind::kNode, 0}};
  EXPECT_EQ(all(queue), expected);
}

TEST_F(ValueQueueTest, NewBitsWakeWhatUsesTheVariable) {
  ValueQueue queue{graph_, {}};
  (void)all(queue);
  queue.learn(one_, 5, 0xff);
  EXPECT_EQ(all(queue).size(), 1U);
  queue.learn(one_, 5, 0xff);
  EXPECT_TRUE(all(queue).empty()) << "no bit was new";
  queue.learn(one_ + 1, 1, 1);
  EXPECT_EQ(all(queue).size(), 2U);
  EXPECT_TRUE(graph_.consistent);
}

TEST_F(ValueQueueTest, AnItemWaitsOnce) {
  ValueQueue queue{graph_, {}};
  (void)all(queue);
  queue.enqueue(Kind::kAccess, 0);
  queue.learn(one_, 1, 1);
  EXPECT_EQ(all(queue).size(), 1U);
}

TEST_F(ValueQueueTest, ContradictionsMakeTheGraphInconsistent) {
  ValueQueue queue{graph_, {}};
  queue.learn(one_, 0, 1);
  queue.learn(one_, 1, 1);
  EXPECT_FALSE(graph_.consistent);
}

}  // namespace
}  // namespace backtrail::decoder::values
