// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// System calls of the program that name memory of the recorder.

#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/registers.hpp"

namespace backtrail::tracee::cache {

/// [first, second).
using MemoryRange = std::pair<TraceeAddr, TraceeAddr>;
/// Returns true if one of the ranges contains the address.
[[nodiscard]] bool is_in(TraceeAddr address, std::span<const MemoryRange> ranges);

/// A call that changes mappings, as it would be if the recorder had mapped nothing.
struct CallAround {
  enum class Names : std::uint8_t {
    kNothing,   ///< The call names no memory of the recorder.
    kMappings,  ///< The call changes mappings, some of which are the recorder's.
    kPlaces,    ///< The call maps memory where the recorder's is.
  };
  Names names = Names::kNothing;
  std::vector<MemoryRange> parts;  ///< For kMappings: the rest of its range, ascending.
  int error = 0;                   ///< For kMappings: its errno after all parts; 0: none.
};
/// Judges the call that a thread is about to make. `ours`: memory of the recorder, ascending.
[[nodiscard]] CallAround call_around(const arch::cpu::UserRegs& regs,
                                     std::span<const MemoryRange> ours);

}  // namespace backtrail::tracee::cache
