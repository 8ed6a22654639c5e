// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tests whether a branch event with a period of 1 records BTS when the kernel opens it. Drivers of
/// other CPUs open it as a plain sampler.

#include <cstdint>

#include "arch/base/address.hpp"
#include "ptrace/perf/perf_kernel.hpp"

namespace backtrail::tracee {

/// A loop in this program: one conditional jump, taken `turns` times.
struct KnownLoop {
  TraceeAddr from;
  TraceeAddr to;
  std::uint64_t turns;
};
[[nodiscard]] KnownLoop known_loop();

enum class BtsTrial : std::uint8_t {
  kBts,      ///< Every iteration of the loop was recorded.
  kSampler,  ///< Only some iterations or none were recorded: not a branch trace.
  kRefused,  ///< The event could not be opened or enabled, so nothing is known.
};

/// Runs the loop on this thread under such an event and counts its recorded iterations.
[[nodiscard]] BtsTrial try_bts(PerfKernel& kernel);

}  // namespace backtrail::tracee
