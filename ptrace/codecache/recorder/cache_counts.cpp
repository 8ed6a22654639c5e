// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/cache_counts.hpp"

#include <utility>

#include <fmt/format.h>

#include "ptrace/codecache/translation/code_cache.hpp"

namespace backtrail::tracee::cache {

void CacheCounts::note_miss(TraceeAddr log, std::optional<Reason> why) {
  if (std::exchange(counted_at_, log) != log) ++misses_;
  if (why) note_untranslatable(*why);
}

void CacheCounts::add_to(SourceStatistics& sums) const {
  sums.branches += stepped_branches_;
  sums.entries += entries_;
  sums.misses += misses_;
  for (std::size_t i = 0; i < untranslatable_.size(); ++i) {
    if (untranslatable_.at(i) == 0) continue;
    sums.fallbacks[std::string{to_string(static_cast<Reason>(i))}] += untranslatable_.at(i);
  }
}

std::string CacheCounts::untranslatable() const {
  std::string text;
  for (std::size_t i = 0; i < untranslatable_.size(); ++i) {
    if (untranslatable_.at(i) == 0) continue;
    text += fmt::format("; {} {}", untranslatable_.at(i), to_string(static_cast<Reason>(i)));
  }
  return text;
}

std::string describe(const CodeCache& code) {
  std::string text =
      fmt::format("; {} superblocks of {} instructions, {} bytes of code, in {} bytes",
                  code.blocks(), code.instructions(), code.source_bytes(), code.bytes_used());
  if (code.retranslated() != 0) {
    text += fmt::format("; {} retranslated by profile", code.retranslated());
  }
  if (code.renewed() != 0) text += fmt::format("; {} retranslated after writes", code.renewed());
  if (code.cleared() != 0) text += fmt::format("; evicted {} times", code.cleared());
  return text;
}

}  // namespace backtrail::tracee::cache
