#pragma once
/// @file
/// What CPUs do wrong in their traces.

#include "decoder/pt/cpu_identity.hpp"

namespace backtrail::decoder {

/// The errata that change where tracing goes on, by the names of Intel's specification updates.
struct PtErrata {
  bool bdm70 = false;  ///< A PSB+ just before a TIP.PGE names an address though tracing is off.
  /// skd010, apl11, apl12: an OVF is followed by what does not belong there, or by nothing.
  bool overflow = false;
};

/// As libipt knows them; none of a CPU that it does not know.
[[nodiscard]] PtErrata pt_errata_of(const CpuIdentity& cpu);

/// Whether libipt, and with it gdb, knows this CPU and its errata. It refuses others: for those no
/// identity is told, and decoding goes without errata.
[[nodiscard]] bool pt_errata_known(const CpuIdentity& cpu);

}  // namespace backtrail::decoder
