// What of a mapping goes into a core.
#include "ptrace/core/memory_plan.hpp"

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
  for (const char* path : {"/tmp/a (deleted)", "/memfd:jit (deleted)"}) {
    EXPECT_EQ(part_in_core(mapping(std::string{"1000-3000 r-xp 00001000 08:01 12 "} + path), false),
              MappingPart::kWhole);
    EXPECT_EQ(part_in_core(mapping(std::string{"1000-3000 rw-s 00001000 08:01 12 "} + path), false),
              MappingPart::kPopulated);
  }
  EXPECT_EQ(part_in_core(mapping("1000-3000 rw-s 00000000 08:01 12 /var/db"), false),
            MappingPart::kNone);
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

}  // namespace
}  // namespace backtrail::tracee
