// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/decoded_insns.hpp"

#include <algorithm>

#include "arch/x86/translate/quick_decode.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::size_t kSlotBits = 9;

}  // namespace

SourceInsn DecodedInsns::decode(TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  SourceInsn insn = unknown_insn;
  if (quick_decode(pc, bytes, insn)) return insn;
  if (slots_.empty()) slots_.resize(std::size_t{1} << kSlotBits);
  const std::uint64_t at = pc.value() ^ pc.value() >> kSlotBits;
  SourceInsn& slot = slots_[at & (slots_.size() - 1)];
  const auto known = slot.view();
  const bool is_known = slot.pc == pc && !known.empty() && known.size() <= bytes.size() &&
                        std::equal(known.begin(), known.end(), bytes.begin());
  if (!is_known) slot = decode_source(pc, bytes);
  insn = slot;
  return insn;
}

}  // namespace backtrail::arch::x86::translate
