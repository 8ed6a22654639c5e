// SPDX-License-Identifier: Apache-2.0
#include "decoder/file/perf_data.hpp"

#include <array>
#include <cstring>
#include <map>
#include <span>

#include <gtest/gtest.h>

#include "arch/base/bytes.hpp"
#include "arch/base/file_bytes.hpp"
#include "decoder/pt/pt_scanner.hpp"
#include "test/support/ipt_oracle.hpp"
#include "test/support/ring_writer.hpp"

namespace backtrail::decoder {
namespace {

using perf::RecordType;

std::vector<std::uint8_t> recording() {
  return file_bytes(BT_DATA_DIR "/perf.data.intel_pt-4.14").value_or(std::vector<std::uint8_t>{});
}

void append(std::vector<std::uint8_t>& out, const std::vector<std::uint8_t>& more) {
  out.insert(out.end(), more.begin(), more.end());
}

/// Returns the end of the data section according to the file's header.
std::uint64_t data_end(std::span<const std::uint8_t> file) {
  std::array<std::uint64_t, 2> section{};  // Offset and size.
  std::memcpy(section.data(), file.data() + 40, sizeof section);
  return section[0] + section[1];
}

std::vector<std::uint8_t> auxtrace(std::uint64_t size, std::uint64_t offset, std::uint32_t index,
                                   std::uint8_t fill) {
  auto out =
      test::perf_record(RecordType::kAuxtrace, 0, {size, offset, 0, index | (77ULL << 32U), 2});
  out.insert(out.end(), size, fill);
  return out;
}

std::vector<std::uint8_t> pipe_file() {
  std::vector<std::uint8_t> out(16);
  std::copy_n("PERFILE2", 8, out.begin());
  store_le(out.data() + 8, std::uint64_t{16});
  return out;
}

TEST(PerfData, FindsTheAuxBytesOfARealRecording) {
  const auto bytes = recording();
  ASSERT_FALSE(bytes.empty());
  const auto file = read_perf_data(bytes);
  ASSERT_TRUE(file);
  EXPECT_EQ(file->aux_kind, AuxTraceKind::kIntelPt);
  EXPECT_FALSE(file->snapshot);
  EXPECT_EQ(file->cpuid, "GenuineIntel,6,78,3");
  EXPECT_FALSE(file->broken_at);
  ASSERT_EQ(file->blocks.size(), 2U);
  EXPECT_EQ(file->blocks[0].bytes.size(), 12'240U);
  EXPECT_EQ(file->blocks[0].cpu, 0U);
  EXPECT_EQ(file->blocks[1].bytes.size(), 137'728U);
  EXPECT_EQ(file->blocks[1].cpu, 3U);
  EXPECT_EQ(file->aux_record_bytes, 12'240U + 137'728U);
  EXPECT_EQ(file->aux_truncated, 0U);
}

TEST(PerfData, PacketsOfARealRecordingAreLibiptsOnes) {
  const auto bytes = recording();
  const auto file = read_perf_data(bytes);
  ASSERT_TRUE(file);
  for (const AuxTraceBlock& block : file->blocks) {
    const PtCounts ours = count_packets(block.bytes);
    const auto theirs = test::packet_counts(block.bytes);
    EXPECT_EQ(ours.errors, 0U);
    EXPECT_EQ(ours.skipped_bytes, 0U);
    std::map<std::string, std::uint64_t> named;
    for (std::size_t i = 0; i < kPtKinds; ++i) {
      const auto kind = static_cast<PtKind>(i);
      if (ours.of(kind) != 0) named.emplace(to_string(kind), ours.of(kind));
    }
    EXPECT_EQ(named, theirs);
    EXPECT_GT(ours.of(PtKind::kTnt8), 1000U);
  }
}

TEST(PerfData, CutOffAnywhereItIsBoundedAndSaysSo) {
  const auto bytes = recording();
  for (std::size_t size = 0; size < bytes.size(); size += 997) {
    const auto file = read_perf_data(std::span{bytes}.first(size));
    if (!file) continue;
    EXPECT_EQ(file->missing_bytes != 0, size < data_end(bytes)) << size;
    for (const AuxTraceBlock& block : file->blocks) {
      ASSERT_LE(block.bytes.size() + block.missing_bytes, 137'728U);
    }
  }
}

TEST(PerfData, DamagedAnywhereItIsSurvived) {
  auto bytes = recording();
  for (std::size_t at = 0; at < 3000; ++at) {
    const std::uint8_t before = bytes[at];
    for (const std::uint8_t value : {std::uint8_t{0}, std::uint8_t{0xff}, std::uint8_t{0x80}}) {
      bytes[at] = value;
      (void)read_perf_data(bytes);
    }
    bytes[at] = before;
  }
}

TEST(PerfData, PipesAreReadToTheirEnd) {
  auto file = pipe_file();
  append(file, test::perf_record(RecordType::kAuxtraceInfo, 0, {2, 0, 0, 0, 0, 0, 0}));
  append(file, auxtrace(48, 0, 0, 1));
  append(file, test::perf_record(RecordType::kLost, 0, {1, 9}));
  append(file, auxtrace(24, 48, 0, 2));
  const auto read = read_perf_data(file);
  ASSERT_TRUE(read);
  EXPECT_EQ(read->aux_kind, AuxTraceKind::kIntelBts);
  ASSERT_EQ(read->blocks.size(), 2U);
  EXPECT_EQ(read->blocks[0].tid, 77U);
  EXPECT_EQ(read->blocks[1].offset, 48U);
  EXPECT_EQ(read->lost, 9U);
  // The recorder died while it wrote the last block.
  const auto cut = read_perf_data(std::span{file}.first(file.size() - 10));
  ASSERT_TRUE(cut);
  EXPECT_EQ(cut->blocks[1].bytes.size(), 14U);
  EXPECT_EQ(cut->blocks[1].missing_bytes, 10U);
}

TEST(PerfData, SnapshotsThatOverlapAreTakenOnce) {
  auto file = pipe_file();
  append(file, test::perf_record(RecordType::kAuxtraceInfo, 0, {2, 0, 0, 0, 0, 0, 1}));
  append(file, auxtrace(100, 0, 0, 1));
  append(file, auxtrace(100, 60, 0, 2));
  append(file, auxtrace(100, 60, 1, 3));
  const auto read = read_perf_data(file);
  ASSERT_TRUE(read);
  ASSERT_TRUE(read->snapshot);
  ASSERT_EQ(read->blocks.size(), 3U);
  EXPECT_EQ(read->blocks[1].bytes.size(), 60U);
  EXPECT_EQ(read->blocks[1].repeated_bytes, 40U);
  EXPECT_EQ(read->blocks[2].bytes.size(), 100U);  // Another area.
}

/// Returns an AUXTRACE record that announces more bytes than it has.
std::vector<std::uint8_t> promise(std::uint64_t size, std::uint64_t have) {
  auto out = auxtrace(have, 0, 0, 7);
  store_le(out.data() + 8, size);
  return out;
}

TEST(PerfData, BlocksBeyondTheEndAreTakenAsFarAsTheyGo) {
  for (const std::uint64_t size : {std::uint64_t{101}, std::uint64_t{1} << 40U, ~std::uint64_t{47},
                                   ~std::uint64_t{40}, ~std::uint64_t{0}}) {
    auto file = pipe_file();
    append(file, test::perf_record(RecordType::kAuxtraceInfo, 0, {2, 0, 0, 0, 0, 0, 1}));
    append(file, promise(size, 100));
    const auto read = read_perf_data(file);
    ASSERT_TRUE(read);
    ASSERT_EQ(read->blocks.size(), 1U) << size;
    EXPECT_EQ(read->blocks[0].bytes.size(), 100U);
    EXPECT_EQ(read->blocks[0].missing_bytes, size - 100);
    EXPECT_EQ(read->blocks[0].repeated_bytes, 0U);
    EXPECT_EQ(read->records, 2U);
  }
}

TEST(PerfData, ShortHeadersEndWhatCanBeRead) {
  for (std::size_t words = 0; words < 5; ++words) {
    auto file = pipe_file();
    append(file, auxtrace(8, 0, 0, 1));
    const std::size_t at = file.size();
    append(file, test::perf_record(RecordType::kAuxtrace, 0, std::vector<std::uint64_t>(words)));
    append(file, auxtrace(8, 0, 0, 2));
    const auto read = read_perf_data(file);
    ASSERT_TRUE(read);
    EXPECT_EQ(read->broken_at, at);
    EXPECT_EQ(read->blocks.size(), 1U);
  }
  // A longer header than today's is skipped.
  auto file = pipe_file();
  append(file, test::perf_record(RecordType::kAuxtrace, 0, {8, 0, 0, 0, 2, 9, 9}));
  append(file, std::vector<std::uint8_t>(8, 3));
  append(file, auxtrace(8, 8, 0, 4));
  const auto read = read_perf_data(file);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->blocks.size(), 2U);
  EXPECT_EQ(read->blocks[0].bytes[0], 3U);
  EXPECT_FALSE(read->broken_at);
}

TEST(PerfData, ASnapshotWithinAnEarlierOneAddsNothing) {
  auto file = pipe_file();
  append(file, test::perf_record(RecordType::kAuxtraceInfo, 0, {2, 0, 0, 0, 0, 0, 1}));
  append(file, auxtrace(104, 0, 0, 1));
  append(file, auxtrace(40, 8, 0, 2));
  append(file, auxtrace(16, 96, 0, 3));
  append(file, auxtrace(16, 200, 0, 4));
  const auto read = read_perf_data(file);
  ASSERT_TRUE(read);
  ASSERT_EQ(read->blocks.size(), 4U);
  EXPECT_TRUE(read->blocks[1].bytes.empty());
  EXPECT_EQ(read->blocks[1].repeated_bytes, 40U);
  EXPECT_EQ(read->blocks[2].bytes.size(), 8U);
  EXPECT_EQ(read->blocks[3].bytes.size(), 16U);
  // Outside of snapshot mode, repeated positions belong to another recording.
  auto full = pipe_file();
  append(full, test::perf_record(RecordType::kAuxtraceInfo, 0, {2, 0, 0, 0, 0, 0, 0}));
  append(full, auxtrace(104, 0, 0, 1));
  append(full, auxtrace(40, 8, 0, 2));
  const auto whole = read_perf_data(full);
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->blocks[1].bytes.size(), 40U);
}

TEST(PerfData, WrongFilesAreToldApart) {
  EXPECT_FALSE(read_perf_data({}));
  std::vector<std::uint8_t> swapped(200);
  std::copy_n("2ELIFREP", 8, swapped.begin());
  const auto other = read_perf_data(swapped);
  ASSERT_FALSE(other);
  EXPECT_TRUE(other.error().is(TraceErrc::kUnsupported));
  auto short_header = pipe_file();
  append(short_header, test::perf_record(RecordType::kAuxtrace, 0, {8, 0}));
  const auto broken = read_perf_data(short_header);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->broken_at, 16U);
}

}  // namespace
}  // namespace backtrail::decoder
