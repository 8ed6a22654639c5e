// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// By which exits superblocks are left: samples of the logs of running threads.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <unordered_map>

#include "arch/base/address.hpp"

namespace backtrail::tracee::cache {

/// Counts exits until there are enough to tell which way superblocks go.
class ExitProfile {
 public:
  /// Samples of one exit.
  struct Count {
    std::uint32_t seen = 0;  ///< Samples that left by this exit.
    /// For exits of indirect branches: the target that more than half of the samples had, if there
    /// is one.
    TraceeAddr target;
    std::uint32_t majority = 0;  ///< Samples with that target less those with others.
  };
  /// Tells where an exit of an indirect branch led to, by the log entry after it; nullopt for other
  /// exits.
  using TargetOf = std::function<std::optional<TraceeAddr>(std::uint32_t exit, std::uint32_t next)>;

  /// Looks at some of a full log's entries.
  void sample(std::span<const std::uint32_t> log, const TargetOf& target_of);
  /// Whether there are enough samples to tell.
  [[nodiscard]] bool due() const { return samples_ >= kWanted; }
  /// Samples by exit id.
  [[nodiscard]] const std::unordered_map<std::uint32_t, Count>& counts() const { return counts_; }
  /// Forgets all samples. If they told nothing new, fewer logs are looked at from now on.
  void begin_again(bool told_something);

 private:
  /// Samples taken of a log. Code that is hot from the beginning is soon known; after that, looking
  /// must be cheap.
  static constexpr std::size_t kFirstSamples = 2048;
  static constexpr std::size_t kSamples = 512;
  static constexpr std::size_t kFirstRounds = 4;
  static constexpr std::size_t kWanted = 4 * kFirstSamples;
  static constexpr std::uint32_t kRarest = 256;  ///< Looks at every that many logs at least.

  std::unordered_map<std::uint32_t, Count> counts_;
  std::size_t samples_ = 0;
  std::size_t rounds_ = 0;
  std::uint32_t every_ = 1;
  std::uint32_t logs_ = 0;
};

}  // namespace backtrail::tracee::cache
