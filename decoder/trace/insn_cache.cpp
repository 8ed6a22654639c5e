// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/insn_cache.hpp"

#include <array>

namespace backtrail::decoder {

const arch::InsnFacts& InsnCache::at(TraceeAddr pc) {
  if (const auto found = facts_.find(pc); found != facts_.end()) return found->second;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t available = code_.read_code(pc, bytes);
  const arch::InsnFacts facts =
      arch::decode_insn(code_.isa(), pc, std::span{bytes}.first(available));
  static constexpr arch::InsnFacts kUnknown{};
  if (!facts.known()) return kUnknown;
  return facts_.emplace(pc, facts).first->second;
}

void InsnCache::invalidate(TraceeAddr begin, TraceeAddr end) {
  ++generation_;
  // An instruction that begins before the range may reach into it.
  const TraceeAddr first =
      begin.value() < arch::kMaxInsnBytes ? TraceeAddr{} : begin - (arch::kMaxInsnBytes - 1);
  if (end <= first) return;
  if (end - first < facts_.size()) {
    for (TraceeAddr pc = first; pc < end; pc += 1) facts_.erase(pc);
    return;
  }
  std::erase_if(facts_,
                [=](const auto& entry) { return entry.first >= first && entry.first < end; });
}

void InsnCache::invalidate_all() {
  ++generation_;
  facts_.clear();
}

}  // namespace backtrail::decoder
