// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Samples of full logs: by which exits superblocks are left.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

/// Counts exits in samples of logs until there are enough to tell which way superblocks go.
class ExitProfile {
 public:
  /// Samples of one exit.
  struct Count {
    std::uint32_t seen = 0;  ///< Number of samples with this exit.
    /// For exits of indirect branches: the target that more than half of the samples had, if there
    /// is one.
    TraceeAddr target;
    std::uint32_t majority = 0;  ///< At least the samples with that target minus the others.
  };
  /// Returns the target of an indirect branch's exit, by the log entry after it; nullopt for other
  /// exits.
  using TargetOf = std::function<std::optional<TraceeAddr>(std::uint32_t exit, std::uint32_t next)>;

  /// Counts some of a full log's entries, or none if this log is not to be sampled.
  void sample(std::span<const std::uint32_t> log, const TargetOf& target_of);
  /// Returns true if there are enough samples.
  [[nodiscard]] bool due() const { return samples_ >= kWanted; }
  /// Returns the counts by exit id.
  [[nodiscard]] const std::unordered_map<std::uint32_t, Count>& counts() const { return counts_; }
  /// Samples none of the first logs, which are all that many programs fill: the code was kept by an
  /// earlier process, and with it what that one's samples told.
  void expect_known_code() { skipped_ = kKnown; }
  /// Forgets all samples. If they told nothing new, fewer logs are sampled from now on.
  void begin_again(bool told_something);

 private:
  /// Number of samples from one log: kFirstSamples in the first rounds, because code that is hot
  /// from the beginning must be known soon; after that kSamples, because sampling must be cheap.
  static constexpr std::size_t kFirstSamples = 2048;
  static constexpr std::size_t kSamples = 512;
  static constexpr std::size_t kFirstRounds = 4;
  static constexpr std::uint32_t kKnown = 6;
  static constexpr std::size_t kWanted = 4 * kFirstSamples;
  static constexpr std::uint32_t kRarest = 256;  ///< At least one of this many logs is sampled.

  std::unordered_map<std::uint32_t, Count> counts_;
  std::size_t samples_ = 0;
  std::size_t rounds_ = 0;
  std::uint32_t every_ = 1;
  std::uint32_t logs_ = 0;
  std::uint32_t skipped_ = 0;  ///< Number of logs that are not sampled from now on.
};

}  // namespace backtrail::tracee::cache
