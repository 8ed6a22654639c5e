// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/trace_hub.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using namespace literals;
using testing::ElementsAre;
using testing::IsEmpty;

struct Collector : public TraceConsumer {
  void consume(std::span<const Record> more) override {
    ++calls;
    records.insert(records.end(), more.begin(), more.end());
  }
  std::vector<Record> records;
  int calls = 0;
};

const Record start_gap = gap(GapReason::kStart, {}, 0x1000_ta);
const Record first_block = branch(0x1000_ta, 0x2000_ta);
const Record second_block = branch(0x2000_ta, 0x3000_ta);

void feed(TraceHub& hub, const Record& record) {
  hub.consume({&record, 1});
}

TEST(TraceHub, HandsRecordsToAll) {
  TraceHub hub;
  Collector a;
  Collector b;
  hub.add(a);
  hub.add(b);
  feed(hub, start_gap);
  feed(hub, first_block);
  EXPECT_THAT(a.records, ElementsAre(start_gap, first_block));
  EXPECT_THAT(b.records, ElementsAre(start_gap, first_block));
}

TEST(TraceHub, TellsALateConsumerWhereItsTraceBegins) {
  TraceHub hub;
  Collector early;
  Collector late;
  hub.add(early);
  feed(hub, start_gap);
  feed(hub, first_block);
  hub.add(late, 0x2000_ta);
  feed(hub, second_block);
  EXPECT_THAT(early.records, ElementsAre(start_gap, first_block, second_block));
  EXPECT_THAT(late.records, ElementsAre(gap(GapReason::kStart, {}, 0x2000_ta), second_block));
}

TEST(TraceHub, AConsumerIsAddedOnce) {
  TraceHub hub;
  Collector a;
  hub.add(a);
  hub.add(a);
  hub.add(a, 0x1000_ta);
  feed(hub, start_gap);
  EXPECT_THAT(a.records, ElementsAre(start_gap));
}

TEST(TraceHub, AConsumerThatLeftHearsNothing) {
  TraceHub hub;
  Collector a;
  Collector b;
  EXPECT_TRUE(hub.empty());
  hub.add(a);
  hub.add(b);
  EXPECT_TRUE(hub.remove(a));
  EXPECT_FALSE(hub.remove(a));
  EXPECT_FALSE(hub.empty());
  feed(hub, start_gap);
  EXPECT_THAT(a.records, IsEmpty());
  EXPECT_THAT(b.records, ElementsAre(start_gap));
}

TEST(TraceHub, NothingIsNotHandedOn) {
  TraceHub hub;
  Collector a;
  hub.add(a);
  hub.consume({});
  EXPECT_EQ(a.calls, 0);
}

}  // namespace
}  // namespace backtrail::decoder
