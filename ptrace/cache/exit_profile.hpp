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

class ExitProfile {
 public:
  struct Count {
    std::uint32_t seen = 0;
    /// Of exits with any target: the one that more than half of them had, if there is one, and how
    /// much more often than all others.
    TraceeAddr target;
    std::uint32_t majority = 0;
  };
  /// Where the log's next number shows that an exit of any target led to; nothing for others.
  using TargetOf = std::function<std::optional<TraceeAddr>(std::uint32_t exit, std::uint32_t next)>;

  /// Looks at some of a full log's numbers.
  void sample(std::span<const std::uint32_t> log, const TargetOf& target_of);
  /// There are enough samples to tell.
  [[nodiscard]] bool due() const { return samples_ >= wanted_; }
  [[nodiscard]] const std::unordered_map<std::uint32_t, Count>& counts() const { return counts_; }
  /// Forgets them. If they told nothing new, fewer logs are looked at from now on.
  void begin_again(bool told_something);

 private:
  static constexpr std::size_t kSamples = 2048;  ///< Of a log.
  static constexpr std::size_t kFirstWanted = 4 * kSamples;
  static constexpr std::uint32_t kRarest = 256;  ///< Looks at every that many logs at least.

  std::unordered_map<std::uint32_t, Count> counts_;
  std::size_t samples_ = 0;
  std::size_t wanted_ = kFirstWanted;
  std::uint32_t every_ = 1;
  std::uint32_t logs_ = 0;
};

}  // namespace backtrail::tracee::cache
