// SPDX-License-Identifier: Apache-2.0
#include "decoder/trace/code_history.hpp"

#include <algorithm>
#include <iterator>
#include <map>

#include "arch/base/value_kind.hpp"
#include "decoder/trace/code_granule.hpp"

namespace backtrail::decoder {
CodeHistory::CodeHistory(arch::Isa isa, std::span<const ValueFact> facts) : isa_{isa} {
  // The granules of which something is known at this place, with a mask of their known bytes.
  std::map<std::uint64_t, std::uint64_t> known;
  for (const ValueFact& fact : facts) {
    constant_.take(fact);
    if (!arch::is_of_code(fact.kind)) continue;
    const std::uint64_t begin = fact.pc.value();
    const std::uint64_t bytes =
        fact.kind == arch::kCodeKind ? fact.value : std::uint64_t{fact.kind} - arch::kCodeKind;
    const std::uint64_t end = bytes > ~begin ? ~std::uint64_t{0} : begin + bytes;
    if (fact.kind == arch::kCodeKind) {
      for (auto at = known.lower_bound(granule_of(begin)); at != known.end() && at->first < end;) {
        const std::uint64_t mask = granule_mask(at->first, begin, end);
        granules_[at->first].push_back({fact.record, 0, mask, false});
        at->second &= ~mask;
        at = at->second == 0 ? known.erase(at) : std::next(at);
      }
      continue;
    }
    // A fact of a damaged file may reach into a second granule; it is cut.
    const std::uint64_t granule = granule_of(begin);
    const std::uint64_t shift = 8 * (begin - granule);
    const std::uint64_t mask = granule_mask(granule, begin, end);
    granules_[granule].push_back({fact.record, fact.value << shift & mask, mask});
    known[granule] |= mask;
    pages_.insert(page_of(fact.pc));
  }
}

std::size_t CodeHistory::copy(std::uint64_t record, TraceeAddr pc,
                              std::span<std::uint8_t> out) const {
  std::size_t count = 0;
  while (count < out.size()) {
    const std::uint64_t at = pc.value() + count;
    const std::uint64_t granule = granule_of(at);
    const auto found = granules_.find(granule);
    if (found == granules_.end()) break;
    const std::vector<Piece>& pieces = found->second;
    auto next =
        std::make_reverse_iterator(std::ranges::upper_bound(pieces, record, {}, &Piece::record));
    std::uint64_t value = 0;
    std::uint64_t known = 0;
    // The newest fact of each byte counts.
    for (std::uint64_t told = 0; next != pieces.rend() && told != ~std::uint64_t{0}; ++next) {
      const std::uint64_t fresh = next->mask & ~told;
      if (next->is_known) {
        value |= next->value & fresh;
        known |= fresh;
      }
      told |= next->mask;
    }
    std::uint64_t byte = at - granule;
    for (; byte < kCodeGranule && count < out.size() && (known >> 8 * byte & 1) != 0; ++byte) {
      out[count++] = static_cast<std::uint8_t>(value >> 8 * byte);
    }
    if (byte < kCodeGranule) break;
  }
  return count;
}

const ExecutedInsn* CodeHistory::at(std::uint64_t record, TraceeAddr pc) {
  if (granules_.empty()) return nullptr;
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  const std::size_t count = copy(record, pc, bytes);
  if (count == 0) return nullptr;
  const auto available = std::span<const std::uint8_t>{bytes}.first(count);
  const auto is_same = [available](const std::unique_ptr<ExecutedInsn>& insn) {
    const auto own = insn->view();
    return own.size() <= available.size() && std::ranges::equal(own, available.first(own.size()));
  };
  auto& same_pc = insns_[pc];
  if (const auto found = std::ranges::find_if(same_pc, is_same); found != same_pc.end()) {
    return found->get();
  }
  const arch::InsnFacts facts = arch::decode_insn(isa_, pc, available);
  if (!facts.known()) return nullptr;
  same_pc.push_back(std::make_unique<ExecutedInsn>(ExecutedInsn{bytes, facts}));
  return same_pc.back().get();
}

bool CodeHistory::is_as_at_end(std::uint64_t record, TraceeAddr begin, TraceeAddr end) const {
  if (end <= begin) return false;
  const std::uint64_t bytes = end - begin;
  if (constant_.is_told()) return constant_.bytes_at(record, begin, bytes) == bytes;
  for (std::uint64_t page = page_of(begin); page <= page_of(end - 1); ++page) {
    if (pages_.contains(page)) return false;
  }
  return true;
}

const arch::InsnFacts& executed_facts(CodeHistory* code, InsnCache& at_end, std::uint64_t record,
                                      TraceeAddr pc) {
  static constexpr arch::InsnFacts kUnknown{};
  if (code == nullptr) return at_end.at(pc);
  if (const ExecutedInsn* insn = code->at(record, pc)) return insn->facts;
  const arch::InsnFacts& facts = at_end.at(pc);
  return code->is_as_at_end(record, pc, pc + facts.length) ? facts : kUnknown;
}

}  // namespace backtrail::decoder
