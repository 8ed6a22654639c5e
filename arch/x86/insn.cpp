// SPDX-License-Identifier: Apache-2.0
#include "arch/insn.hpp"

#include "arch/x86/insn_length.hpp"

namespace backtrail::arch {

InsnFacts decode_insn(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  return x86::decode(isa, x86::host_near_branch_rule(), pc, bytes);
}

}  // namespace backtrail::arch
