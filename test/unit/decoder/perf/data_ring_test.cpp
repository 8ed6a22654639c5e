// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/data_ring.hpp"

#include <gtest/gtest.h>

#include "test/support/ring_writer.hpp"

namespace backtrail::decoder::perf {
namespace {

using test::perf_record;
using test::put_at;

std::vector<std::uint64_t> addresses(const RecordView& record) {
  const auto parsed = parse_record(record, {kSampleIp | kSampleAddr, false, 0});
  const auto* sample = std::get_if<SampleRecord>(&parsed.body);
  if (sample == nullptr) return {};
  return {sample->ip, sample->addr};
}

TEST(DataRing, RecordsOfEverySizeWrapAtEveryOffset) {
  constexpr std::size_t kSize = 256;
  for (std::uint64_t start = 0; start < 2 * kSize; start += 8) {
    for (std::size_t words = 0; words < 20; ++words) {
      std::vector<std::uint8_t> ring(kSize, 0xcc);
      std::vector<std::uint64_t> body(words);
      for (std::size_t i = 0; i < words; ++i) body[i] = start * 1000 + i;
      const auto first = perf_record(RecordType::kMmap, 7, body);
      const auto second = perf_record(RecordType::kSample, 1, {0x1111, 0x2222});
      put_at(ring, start, first);
      put_at(ring, start + first.size(), second);
      DataRing reader{ring};
      std::size_t seen = 0;
      const std::uint64_t head = start + first.size() + second.size();
      const RingWalk walk = reader.visit(start, head, [&](const RecordView& record) {
        if (seen++ == 0) {
          ASSERT_EQ(record.type, RecordType::kMmap);
          ASSERT_EQ(record.misc, 7);
          ASSERT_EQ(record.body.size(), words * 8);
          for (std::size_t i = 0; i < words; ++i)
            ASSERT_EQ(load_le<std::uint64_t>(record.body, i * 8), body[i]);
        } else {
          ASSERT_EQ(addresses(record), (std::vector<std::uint64_t>{0x1111, 0x2222}));
        }
      });
      ASSERT_FALSE(walk.broken);
      ASSERT_EQ(walk.end, head);
      ASSERT_EQ(seen, 2U);
    }
  }
}

TEST(DataRing, ARecordBehindTheHeadIsNotTouched) {
  std::vector<std::uint8_t> ring(64);
  put_at(ring, 0, perf_record(RecordType::kSample, 0, {1, 2}));
  // Half a record follows the head.
  put_at(ring, 24, std::vector<std::uint8_t>{9, 0, 0, 0});
  DataRing reader{ring};
  std::size_t seen = 0;
  const RingWalk walk = reader.visit(0, 24, [&](const RecordView&) { ++seen; });
  EXPECT_FALSE(walk.broken);
  EXPECT_EQ(seen, 1U);
}

TEST(DataRing, NonsenseEndsTheWalk) {
  std::vector<std::uint8_t> ring(128);
  const auto never = [](const RecordView&) { FAIL(); };
  DataRing reader{ring};
  EXPECT_TRUE(reader.visit(0, 64, never).broken);   // Size 0.
  EXPECT_TRUE(reader.visit(0, 129, never).broken);  // The head is more than the size ahead.
  EXPECT_TRUE(reader.visit(3, 67, never).broken);   // No position of a record.
  put_at(ring, 0, perf_record(RecordType::kSample, 0, {1, 2}));
  ring[6] = 20;
  EXPECT_TRUE(reader.visit(0, 64, never).broken);  // No whole number of words.
  ring[6] = 72;
  EXPECT_TRUE(reader.visit(0, 64, never).broken);  // Longer than the available bytes.
}

}  // namespace
}  // namespace backtrail::decoder::perf
