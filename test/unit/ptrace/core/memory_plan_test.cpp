// SPDX-License-Identifier: Apache-2.0
// Which part of a mapping goes into a core.
#include "ptrace/core/memory_plan.hpp"

#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

using ::testing::SizeIs;

MemoryMapping mapping(const std::string& line, const std::string& details = "") {
  const auto parsed = parse_smaps(line + "\n" + details);
  EXPECT_THAT(parsed, SizeIs(1));
  return parsed.empty() ? MemoryMapping{} : parsed.front();
}

constexpr const char* kTouched = "Rss:                   8 kB\nAnonymous:             8 kB\n";

TEST(MemoryPlan, ReadsSmaps) {
  const auto parsed = parse_smaps(
      "55d000000000-55d000002000 r-xp 00001000 08:01 12 /usr/bin/a b\n"
      "Size:                  8 kB\nRss:                   4 kB\nSwap:                 12 kB\n"
      "Anonymous:             4 kB\nVmFlags: rd ex mr mw me dd \n"
      "7ffc00000000-7ffc00021000 rw-p 00000000 00:00 0                          [stack]\n");
  ASSERT_THAT(parsed, SizeIs(2));
  EXPECT_EQ(parsed[0].map.path, "/usr/bin/a b");
  EXPECT_EQ(parsed[0].resident_bytes, 4096U);
  EXPECT_EQ(parsed[0].swapped_bytes, 12288U);
  EXPECT_EQ(parsed[0].anonymous_bytes, 4096U);
  EXPECT_TRUE(parsed[0].dont_dump);
  EXPECT_EQ(parsed[1].map.path, "[stack]");
  EXPECT_FALSE(parsed[1].dont_dump);
}

MemorySegment segment_of(std::uint64_t bytes, std::vector<AddressRange> ranges) {
  MemorySegment segment;
  segment.map.start = 1ULL << 40U;
  segment.map.end = segment.map.start + bytes;
  segment.file_bytes = bytes;
  for (AddressRange& range : ranges) {
    range.begin += segment.map.start;
    range.end += segment.map.start;
  }
  segment.ranges = std::move(ranges);
  return segment;
}

TEST(MemoryPlan, VastMappingsComeInPieces) {
  constexpr std::uint64_t kGiB = 1ULL << 30U;
  constexpr std::uint64_t kBegin = 1ULL << 40U;
  const auto pieces = split_vast(segment_of(
      20'000 * kGiB, {{4096, 8192}, {kGiB / 2, kGiB}, {9'000 * kGiB, 9'000 * kGiB + 4096}}));
  ASSERT_THAT(pieces, SizeIs(4));
  std::uint64_t at = kBegin;
  std::uint64_t in_file = 0;
  for (const MemorySegment& piece : pieces) {
    EXPECT_EQ(piece.map.start, at);
    EXPECT_EQ(piece.map.offset, at - kBegin);
    at = piece.map.end;
    in_file += piece.file_bytes;
    EXPECT_TRUE(piece.file_bytes == 0 || piece.file_bytes == piece.map.end - piece.map.start);
    for (const AddressRange& range : piece.ranges) {
      EXPECT_GE(range.begin, piece.map.start);
      EXPECT_LE(range.end, piece.map.start + piece.file_bytes);
    }
  }
  EXPECT_EQ(at, kBegin + 20'000 * kGiB);
  EXPECT_EQ(in_file, kGiB + 4096);
  EXPECT_THAT(pieces[0].ranges, SizeIs(2));
  EXPECT_THAT(pieces[2].ranges, SizeIs(1));
}

TEST(MemoryPlan, OtherMappingsStayWhole) {
  constexpr std::uint64_t kGiB = 1ULL << 30U;
  const auto sparse = split_vast(segment_of(4 * kGiB, {{0, 4096}, {3 * kGiB, 3 * kGiB + 4096}}));
  ASSERT_THAT(sparse, SizeIs(1));
  EXPECT_EQ(sparse[0].file_bytes, 4 * kGiB);
  EXPECT_THAT(sparse[0].ranges, SizeIs(2));
  MemorySegment listed = segment_of(500 * kGiB, {});
  listed.file_bytes = 0;
  EXPECT_THAT(split_vast(listed), SizeIs(1));
  const auto empty = split_vast(segment_of(500 * kGiB, {}));
  ASSERT_THAT(empty, SizeIs(1));
  EXPECT_EQ(empty[0].file_bytes, 0U);
}

TEST(MemoryPlan, TextStaysInItsFileUnlessItWasWritten) {
  const std::string text = "1000-3000 r-xp 00001000 08:01 12 /bin/a";
  EXPECT_EQ(part_in_core(mapping(text, "Rss:  8 kB\n"), false), MappingPart::kNone);
  EXPECT_EQ(part_in_core(mapping(text, kTouched), false), MappingPart::kWhole);
  EXPECT_EQ(part_in_core(mapping(text, "Rss:  8 kB\n"), true), MappingPart::kWhole);
}

TEST(MemoryPlan, TheFirstPageOfAFileIsKeptForItsBuildId) {
  EXPECT_EQ(part_in_core(mapping("1000-3000 r--p 00000000 08:01 12 /bin/a"), false),
            MappingPart::kFirstPage);
}

TEST(MemoryPlan, FilesThatAreGoneAreKept) {
  for (const std::string path : {"/tmp/a (deleted)", "/memfd:jit (deleted)"}) {
    EXPECT_EQ(part_in_core(mapping("1000-3000 r-xp 00001000 08:01 12 " + path), false),
              MappingPart::kWhole);
    EXPECT_EQ(part_in_core(mapping("1000-3000 rw-s 00001000 08:01 12 " + path), false),
              MappingPart::kWhole);
    EXPECT_EQ(part_in_core(mapping("100000-400000 rw-s 00001000 08:01 12 " + path), false),
              MappingPart::kInMemory);
  }
  EXPECT_EQ(part_in_core(mapping("1000-3000 rw-s 00000000 08:01 12 /var/db"), false),
            MappingPart::kNone);
  EXPECT_EQ(part_in_core(mapping("1000-3000 rw-s 00000000 08:01 12 /var/db"), true),
            MappingPart::kInMemory);
  MemoryMapping contained = mapping("1000-3000 r-xp 00001000 08:01 12 /bin/a");
  EXPECT_EQ(part_in_core(contained, false), MappingPart::kNone);
  contained.out_of_reach = true;
  EXPECT_EQ(part_in_core(contained, false), MappingPart::kWhole);
  // For data, only pages in memory.
  const std::string data = "100000-180000 r--p 00001000 08:01 12 /tmp/tsan.rodata.1 (deleted)";
  EXPECT_EQ(part_in_core(mapping(data, "Rss:  8 kB\n"), false), MappingPart::kInMemory);
  EXPECT_EQ(part_in_core(mapping(data), false), MappingPart::kNone);
  EXPECT_EQ(part_in_core(mapping(data), true), MappingPart::kWhole);
}

/// The contents of pages that were not touched are not known, and must not read as zeros.
TEST(MemoryPlan, UntouchedPagesOfAFileAreNotInTheCore) {
  const auto pieces =
      split_at_gaps(segment_of(0x10000, {{0x2000, 0x3000}, {0x3000, 0x4000}}), 0x1000);
  ASSERT_THAT(pieces, SizeIs(3));
  EXPECT_EQ(pieces[0].file_bytes, 0U);
  EXPECT_EQ(pieces[1].file_bytes, 0x2000U);
  EXPECT_EQ(pieces[1].map.offset, 0x2000U);
  EXPECT_EQ(pieces[2].file_bytes, 0U);
  EXPECT_EQ(pieces[2].map.end - pieces[0].map.start, 0x10000U);
  EXPECT_FALSE(pieces[0].continues);
  EXPECT_TRUE(pieces[1].continues);
  EXPECT_TRUE(pieces[2].continues);
  const auto untouched = split_at_gaps(segment_of(0x10000, {}), 0x1000);
  ASSERT_THAT(untouched, SizeIs(1));
  EXPECT_EQ(untouched[0].file_bytes, 0U);
}

TEST(MemoryPlan, TheNearestRangesAreJoined) {
  std::vector<AddressRange> ranges{
      {0x1000, 0x2000}, {0x3000, 0x4000}, {0x8000, 0x9000}, {0xa000, 0xb000}};
  const std::vector<AddressRange> before = ranges;
  join_near(ranges, 3);
  EXPECT_EQ(ranges, before);
  join_near(ranges, 2);
  EXPECT_EQ(ranges, (std::vector<AddressRange>{{0x1000, 0x4000}, {0x8000, 0xb000}}));
  join_near(ranges, 0);
  EXPECT_EQ(ranges, (std::vector<AddressRange>{{0x1000, 0xb000}}));
  ranges.clear();
  join_near(ranges, 0);
  EXPECT_TRUE(ranges.empty());
}

TEST(MemoryPlan, AnonymousMemoryIsKeptWhereItWasTouched) {
  EXPECT_EQ(part_in_core(mapping("1000-3000 rw-p 00000000 00:00 0"), false), MappingPart::kNone);
  EXPECT_EQ(part_in_core(mapping("1000-3000 rw-p 00000000 00:00 0", kTouched), false),
            MappingPart::kPopulated);
  EXPECT_EQ(part_in_core(mapping("1000-3000 rw-p 00000000 00:00 0",
                                 std::string{kTouched} + "VmFlags: rd wr dd\n"),
                         true),
            MappingPart::kNone);
}

TEST(MemoryPlan, TheKernelsOwnPages) {
  EXPECT_EQ(part_in_core(mapping("1000-3000 r-xp 00000000 00:00 0 [vdso]"), false),
            MappingPart::kWhole);
  EXPECT_EQ(part_in_core(mapping("1000-3000 r--p 00000000 00:00 0 [vvar]", kTouched), true),
            MappingPart::kNone);
}

/// A name proves nothing, for a program may choose that of the recorder's memory.
TEST(MemoryPlan, LeavesOutByAddressAlone) {
  const MappingsText text{
      "10000-12000 rw-s 00000000 00:01 7 /memfd:backtrail (deleted)\n"
      "12000-14000 r--s 00002000 00:01 7 /memfd:backtrail (deleted)\n"
      "20000-21000 rw-s 00000000 00:01 8 /memfd:backtrail (deleted)\n",
      false};
  const std::vector<AddressRange> ours{{0x10000, 0x14000}};
  const auto planned = plan_memory(::getpid(), text, false, ours);
  ASSERT_TRUE(planned);
  ASSERT_THAT(*planned, SizeIs(1));
  EXPECT_EQ(planned->front().map.start, 0x20000U);
  EXPECT_EQ(planned->front().file_bytes, 0x1000U);
  EXPECT_THAT(*plan_memory(::getpid(), text, false), SizeIs(3));
}

}  // namespace
}  // namespace backtrail::tracee
