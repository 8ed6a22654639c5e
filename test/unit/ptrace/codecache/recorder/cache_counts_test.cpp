// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/cache_counts.hpp"

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using Reason = CacheCounts::Reason;

TEST(CacheCounts, CountAMissOnceHoweverOftenItIsAnswered) {
  CacheCounts counts;
  constexpr TraceeAddr kLog{0x1000};
  counts.note_miss(kLog, {});
  counts.note_miss(kLog, {});
  EXPECT_EQ(counts.misses(), 1);
  counts.note_miss(kLog + 4, {});
  EXPECT_EQ(counts.misses(), 2);
  // A thread that enters again, or a log that begins again, may miss at the same place.
  counts.note_entry();
  counts.note_miss(kLog + 4, {});
  counts.note_full_log();
  counts.note_miss(kLog + 4, {});
  EXPECT_EQ(counts.misses(), 4);
  EXPECT_EQ(counts.entries(), 1);
}

TEST(CacheCounts, AddUpWhatHadNoTranslation) {
  CacheCounts counts;
  EXPECT_EQ(counts.untranslatable(), "");
  counts.note_untranslatable(Reason::kSystemCall);
  counts.note_miss(TraceeAddr{1}, Reason::kSystemCall);
  counts.note_stepped_branch();
  counts.note_native_step();
  EXPECT_EQ(counts.untranslatable(), "; 2 system call");
  SourceStatistics sums;
  counts.add_to(sums);
  EXPECT_EQ(sums.fallbacks.at("system call"), 2);
  EXPECT_EQ(sums.branches, 1);
  EXPECT_EQ(sums.misses, 1);
  EXPECT_EQ(counts.native_steps(), 1);
}

}  // namespace
}  // namespace backtrail::tracee::cache
