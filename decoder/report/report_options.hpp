#pragma once
/// @file
/// What a report is asked for.

#include <cstddef>
#include <cstdint>

namespace backtrail::decoder {

struct ReportOptions {
  std::size_t calls = 50;        ///< Shown of the thread that died.
  std::size_t other_calls = 10;  ///< Shown of each other thread.
  /// Looked at of each thread. 0: as many as the calls shown take, up to a bound.
  std::uint64_t branches = 0;
  bool only_dead = false;  ///< The thread that died, or was first, alone.
};

/// How far is looked back where nobody says: first, and at most. Folded calls can be very many.
inline constexpr std::uint64_t kFirstLook = 1U << 16U;
inline constexpr std::uint64_t kLongestLook = 1U << 22U;
inline constexpr std::uint64_t kLookGrowth = 8;

}  // namespace backtrail::decoder
