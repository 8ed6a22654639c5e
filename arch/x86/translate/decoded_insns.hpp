// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decodes instructions for the translator: the common ones quickly, the others once, because most
/// are part of several superblocks.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/x86/translate/source_insn.hpp"

namespace backtrail::arch::x86::translate {

class DecodedInsns {
 public:
  /// Like decode_source(). A cached instruction is used only if its bytes are the same.
  [[nodiscard]] SourceInsn decode(TraceeAddr pc, std::span<const std::uint8_t> bytes);

 private:
  std::vector<SourceInsn> slots_;  ///< Indexed by a hash of the address; empty until the first use.
};

}  // namespace backtrail::arch::x86::translate
