#pragma once
/// @file
/// Instructions that were decoded lately: most are part of several superblocks.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/x86/translate/source_insn.hpp"

namespace backtrail::arch::x86::translate {

class DecodedInsns {
 public:
  /// As decode_source(): what is remembered is compared with the bytes.
  [[nodiscard]] SourceInsn decode(TraceeAddr pc, std::span<const std::uint8_t> bytes);

 private:
  std::vector<SourceInsn> slots_;  ///< By address; empty until something is decoded.
};

}  // namespace backtrail::arch::x86::translate
