#pragma once
/// @file
/// Which CPU wrote a trace.

namespace backtrail::decoder {

/// The identity of an Intel CPU, as decoders want it to know its errata.
struct CpuIdentity {
  unsigned family = 0;
  unsigned model = 0;
  unsigned stepping = 0;
  bool operator==(const CpuIdentity&) const = default;
};

}  // namespace backtrail::decoder
