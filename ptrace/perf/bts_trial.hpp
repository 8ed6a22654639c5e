#pragma once
/// @file
/// Whether the kernel's yes to a branch event with a period of 1 means BTS: other drivers take it
/// for a plain sampler.

#include <cstdint>

#include "arch/base/address.hpp"
#include "ptrace/perf/perf_kernel.hpp"

namespace backtrail::tracee {

/// A loop of this program: one conditional jump, taken so many times.
struct KnownLoop {
  TraceeAddr from;
  TraceeAddr to;
  std::uint64_t turns;
};
[[nodiscard]] KnownLoop known_loop();

enum class BtsTrial : std::uint8_t {
  kBts,      ///< Every turn of the loop was recorded.
  kSampler,  ///< Some were, or none: whatever it is, it is no branch trace.
  kRefused,  ///< The event did not open: nothing is known.
};

/// Runs the loop on this thread under such an event and looks at what comes.
[[nodiscard]] BtsTrial try_bts(PerfKernel& kernel);

}  // namespace backtrail::tracee
