// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Follows a value back along the trace: where it was written, and from what.

#include <cstdint>
#include <vector>

#include "decoder/values/value_history.hpp"

namespace backtrail::decoder::values {

/// One place on the way of a value, back from where it was seen.
struct TrailPart {
  enum class Kind : std::uint8_t {
    kStored,    ///< The instruction stored it to `address`.
    kLoaded,    ///< The instruction loaded it from `address`.
    kComputed,  ///< The instruction made it from `inputs`.
    // The last part is one of the following.
    kConstant,        ///< `value` is in the instruction, or is what it always makes.
    kCallResult,      ///< The kernel returned it from the system call.
    kHandlerReturn,   ///< The return from a signal handler (rt_sigreturn) set all registers.
    kHalfDone,        ///< The instruction at the end may have changed it before it was stopped.
    kKernel,          ///< The system call wrote it, or may have.
    kMapped,          ///< The system call made the memory, or may have.
    kSignal,          ///< A signal came before the instruction and changed registers or memory.
    kOthers,          ///< Other threads, processes or the kernel may write the memory at any time.
    kMayBeStored,     ///< The instruction stored there, or perhaps there.
    kUnknownAddress,  ///< The instruction loaded it from an unknown address.
    kSeveral,         ///< The instruction made it from several `inputs`.
    kUntracked,       ///< The instruction made it in a way that is not modelled.
    kUnknownEffects,  ///< The system call, or other instruction, may have changed anything.
    kBeginning,       ///< No write since `step`, before which nothing is known.
    kTooLong,
  };
  Kind kind = Kind::kBeginning;
  std::size_t step = 0;
  std::uint64_t address = 0;
  Known value;         ///< The value that was stored, loaded, made, or is constant.
  unsigned bits = 64;  ///< Width of `value`.
  /// A value that the instruction used.
  struct Input {
    Known value;
    unsigned bits = 64;
    bool operator==(const Input&) const = default;
  };
  std::vector<Input> inputs;  ///< For kComputed and kSeveral.
  std::size_t followed = 0;   ///< For kComputed: index of the input that the next part is about.
  bool is_partial = false;    ///< For kStored: `value` is not all of the bytes that were followed.
  /// For kLoaded: the bit of `value` from which on the part before used it.
  unsigned used_from = 0;
};

/// Returns how bytes of memory got to be what they are before step `position`.
[[nodiscard]] std::vector<TrailPart> trail_of_memory(ValueHistory& history, std::size_t position,
                                                     TraceeAddr address, unsigned bytes);
/// Returns how the low `bits` bits of a register got to be what they are before step `position`.
[[nodiscard]] std::vector<TrailPart> trail_of_register(ValueHistory& history, std::size_t position,
                                                       Slot slot, unsigned bits = 64);

}  // namespace backtrail::decoder::values
