// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Errata of CPUs that affect their traces.

#include "decoder/pt/cpu_identity.hpp"

namespace backtrail::decoder {

/// The errata that change where tracing resumes, named as in Intel's specification updates.
struct PtErrata {
  bool bdm70 = false;  ///< A PSB+ just before a TIP.PGE has an address although tracing is off.
  /// skd010, apl11, apl12: the packets after an OVF are wrong or missing.
  bool overflow = false;
};

/// Returns the errata that libipt knows for the CPU; none for an unknown CPU.
[[nodiscard]] PtErrata pt_errata_of(const CpuIdentity& cpu);

/// Returns true if libipt, and so gdb, knows this CPU and its errata. libipt refuses an unknown
/// CPU; no identity is then passed, and decoding assumes no errata.
[[nodiscard]] bool pt_errata_known(const CpuIdentity& cpu);

}  // namespace backtrail::decoder
