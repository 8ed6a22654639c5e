// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What a thread that runs translated code has done, in numbers.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/source/source_statistics.hpp"

namespace backtrail::tracee::cache {

class CodeCache;

class CacheCounts {
 public:
  using Reason = arch::cpu::translate::UntranslatableReason;

  void note_entry() {
    ++entries_;
    counted_at_ = TraceeAddr{};
  }
  void note_full_log() { counted_at_ = TraceeAddr{}; }
  void note_native_step() { ++native_steps_; }
  void note_stepped_branch() { ++stepped_branches_; }
  /// Counts a miss at the log pointer `log`. If an answer comes too late, the thread stops for the
  /// same miss, which counts once.
  void note_miss(TraceeAddr log, std::optional<Reason> why);
  /// Counts code that was found to have no translation.
  void note_untranslatable(Reason why) { ++untranslatable_.at(static_cast<std::size_t>(why)); }

  [[nodiscard]] std::uint64_t entries() const { return entries_; }
  [[nodiscard]] std::uint64_t misses() const { return misses_; }
  [[nodiscard]] std::uint64_t native_steps() const { return native_steps_; }
  /// Adds to all sums but those of logs and stepped instructions.
  void add_to(SourceStatistics& sums) const;
  /// Returns the counts of untranslatable code, each after "; ".
  [[nodiscard]] std::string untranslatable() const;

 private:
  std::uint64_t entries_ = 0;
  std::uint64_t misses_ = 0;
  TraceeAddr counted_at_;  ///< Log pointer at the last miss.
  std::uint64_t native_steps_ = 0;
  std::array<std::uint64_t, 16> untranslatable_{};
  std::uint64_t stepped_branches_ = 0;
};

/// Describes what the code cache holds, each number after "; ".
[[nodiscard]] std::string describe(const CodeCache& code);

}  // namespace backtrail::tracee::cache
