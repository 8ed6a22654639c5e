// SPDX-License-Identifier: Apache-2.0
#include "decoder/perf/perf_record.hpp"

#include <gtest/gtest.h>

#include "decoder/perf/data_ring.hpp"
#include "test/support/ring_writer.hpp"

namespace backtrail::decoder::perf {
namespace {

using test::perf_record;

ParsedRecord parse(const std::vector<std::uint8_t>& bytes, const SampleLayout& layout) {
  ParsedRecord out;
  walk_records(bytes, [&](const RecordView& record) { out = parse_record(record, layout); });
  return out;
}

TEST(PerfRecord, LossesThrottlesAndAuxAreTakenApart) {
  const auto lost = parse(perf_record(RecordType::kLost, 0, {5, 745}), {});
  EXPECT_EQ(std::get<LostRecord>(lost.body).count, 745U);
  EXPECT_EQ(std::get<LostRecord>(lost.body).id, 5U);
  const auto samples = parse(perf_record(RecordType::kLostSamples, 0, {12}), {});
  EXPECT_EQ(std::get<LostSamplesRecord>(samples.body).count, 12U);
  const auto aux =
      parse(perf_record(RecordType::kAux, 0, {4096, 48, kAuxTruncated | kAuxPartial}), {});
  EXPECT_EQ(std::get<AuxRecord>(aux.body).offset, 4096U);
  EXPECT_EQ(std::get<AuxRecord>(aux.body).size, 48U);
  EXPECT_EQ(std::get<AuxRecord>(aux.body).flags, kAuxTruncated | kAuxPartial);
  EXPECT_TRUE(
      std::get<ThrottleRecord>(parse(perf_record(RecordType::kThrottle, 0, {1, 2, 3}), {}).body)
          .begins);
  EXPECT_FALSE(
      std::get<ThrottleRecord>(parse(perf_record(RecordType::kUnthrottle, 0, {1, 2, 3}), {}).body)
          .begins);
  const auto start = parse(perf_record(RecordType::kItraceStart, 0, {(8ULL << 32U) | 7}), {});
  EXPECT_EQ(std::get<ItraceStartRecord>(start.body).pid, 7U);
  EXPECT_EQ(std::get<ItraceStartRecord>(start.body).tid, 8U);
}

TEST(PerfRecord, SwitchSaysWhichWayAndWhen) {
  const SampleLayout layout{kSampleTid | kSampleTime | kSampleCpu, true, 0};
  const auto out = parse(perf_record(RecordType::kSwitch, kMiscSwitchOut | kMiscSwitchPreempt,
                                     {(9ULL << 32U) | 8, 12345, 3}),
                         layout);
  EXPECT_TRUE(std::get<SwitchRecord>(out.body).departs);
  EXPECT_TRUE(std::get<SwitchRecord>(out.body).preempted);
  EXPECT_EQ(out.sample.pid, 8U);
  EXPECT_EQ(out.sample.tid, 9U);
  EXPECT_EQ(out.sample.time, 12345U);
  EXPECT_EQ(out.sample.cpu, 3U);
  const auto in = parse(perf_record(RecordType::kSwitch, 0, {1, 2, 3}), layout);
  EXPECT_FALSE(std::get<SwitchRecord>(in.body).departs);
  // Without sample_id_all there is no time.
  EXPECT_EQ(parse(perf_record(RecordType::kSwitch, 0, {}), {}).sample.time, std::nullopt);
  const auto wide =
      parse(perf_record(RecordType::kSwitchCpuWide, kMiscSwitchOut, {1, 2, 77, 4}), layout);
  EXPECT_TRUE(std::get<SwitchRecord>(wide.body).departs);
  EXPECT_EQ(wide.sample.time, 77U);
}

TEST(PerfRecord, TrailerStandsAtTheEndWhateverNewFieldsComeBefore) {
  const SampleLayout layout{kSampleTime | kSampleIdentifier, true, 0};
  const auto aux = parse(perf_record(RecordType::kAux, 0, {1, 2, 0, 0xdead, 555, 66}), layout);
  EXPECT_EQ(std::get<AuxRecord>(aux.body).size, 2U);
  EXPECT_EQ(aux.sample.time, 555U);
  EXPECT_EQ(aux.sample.id, 66U);
}

TEST(PerfRecord, SampleFieldsComeInTheKernelsOrder) {
  const SampleLayout layout{kSampleIdentifier | kSampleIp | kSampleTid | kSampleTime | kSampleAddr |
                                kSampleId | kSampleStreamId | kSampleCpu | kSamplePeriod |
                                kSampleBranchStack,
                            true, kBranchHwIndex};
  const auto bytes = perf_record(RecordType::kSample, 1,
                                 {42, 0x1000, (6ULL << 32U) | 5, 99, 0x2000, 42, 43, 1, 1, 2, 0,
                                  0xa, 0xb, 2, 0xc, 0xd, 1U << 24U});
  const auto out = parse(bytes, layout);  // Refers to the bytes.
  const auto& sample = std::get<SampleRecord>(out.body);
  EXPECT_EQ(sample.ip, 0x1000U);
  EXPECT_EQ(sample.addr, 0x2000U);
  EXPECT_EQ(out.sample.tid, 6U);
  EXPECT_EQ(out.sample.time, 99U);
  ASSERT_EQ(sample.branches.size(), 48U);
  EXPECT_EQ(read_branch_entry(sample.branches, 0).to, 0xbU);
  EXPECT_TRUE(read_branch_entry(sample.branches, 0).predicted());
  EXPECT_FALSE(read_branch_entry(sample.branches, 0).mispredicted());
  EXPECT_EQ(read_branch_entry(sample.branches, 1).speculation(), 1U);
}

TEST(PerfRecord, TooShortIsBrokenNotGuessed) {
  const std::vector<RecordType> types{RecordType::kLost,        RecordType::kAux,
                                      RecordType::kLostSamples, RecordType::kItraceStart,
                                      RecordType::kThrottle,    RecordType::kExit};
  for (const RecordType type : types)
    EXPECT_TRUE(std::holds_alternative<BrokenRecord>(parse(perf_record(type, 0, {}), {}).body));
  const SampleLayout stack{kSampleBranchStack, false, 0};
  // The count announces more entries than there are.
  EXPECT_TRUE(std::holds_alternative<BrokenRecord>(
      parse(perf_record(RecordType::kSample, 0, {2, 1, 2, 3}), stack).body));
  EXPECT_TRUE(std::holds_alternative<BrokenRecord>(
      parse(perf_record(RecordType::kSample, 0, {~0ULL, 1, 2, 3}), stack).body));
}

}  // namespace
}  // namespace backtrail::decoder::perf
