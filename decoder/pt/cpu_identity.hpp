// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Identifies the CPU that wrote a trace.

namespace backtrail::decoder {

/// The identity of an Intel CPU, by which decoders know its errata.
struct CpuIdentity {
  unsigned family = 0;
  unsigned model = 0;
  unsigned stepping = 0;
  bool operator==(const CpuIdentity&) const = default;
};

}  // namespace backtrail::decoder
