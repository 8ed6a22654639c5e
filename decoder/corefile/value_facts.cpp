// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/value_facts.hpp"

#include <algorithm>
#include <array>

#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::size_t kRegisters = 16;

/// The numbers that differences are counted from. A register's values are mostly near its last one.
struct Last {
  std::uint64_t record = 0;
  std::uint64_t pc = 0;
  std::array<std::uint64_t, kRegisters> values{};
};

void encode(const ValueFact& fact, std::uint64_t shift, Last& last, ByteWriter& out) {
  const std::uint64_t record = fact.record - shift;
  std::uint64_t& value = last.values.at(fact.reg);
  out.varint((record - last.record) * kRegisters + fact.reg);
  out.signed_varint(fact.pc.value() - last.pc);
  out.signed_varint(fact.value - value);
  last.record = record;
  last.pc = fact.pc.value();
  value = fact.value;
}

}  // namespace

void append_facts(std::uint32_t tid, const std::deque<ValueFact>& facts, std::uint64_t shift,
                  std::vector<std::uint8_t>& out) {
  auto next =
      std::ranges::find_if(facts, [shift](const ValueFact& fact) { return fact.record >= shift; });
  while (next != facts.end()) {
    const auto count =
        std::min<std::size_t>(kBlockFacts, static_cast<std::size_t>(facts.end() - next));
    const std::uint64_t first = next->record - shift;
    ByteWriter raw;
    raw.varint(count);
    Last last{.record = first};
    for (std::size_t i = 0; i < count; ++i) encode(*next++, shift, last, raw);
    append_packed({.magic = kFactsMagic, .tid = tid, .records = kFactsVersion, .first = first},
                  raw.bytes(), out);
  }
}

Result<void> decode_facts(const TraceBlock& block, std::vector<ValueFact>& out) {
  const auto malformed = [&] {
    return fail(TraceErrc::kMalformed, "decode a block of recorded values", block.first);
  };
  if (block.records != kFactsVersion) return malformed();
  BT_TRY(const auto raw, unpack_block(block));
  ByteReader in{raw};
  const std::size_t before = out.size();
  const std::uint64_t count = in.varint();
  const bool ascends = out.empty() || out.back().record <= block.first;
  if (count > kBlockFacts || !ascends) return malformed();
  Last last{.record = block.first};
  for (std::uint64_t i = 0; i < count && in.good(); ++i) {
    const std::uint64_t place = in.varint();
    const std::size_t reg = place % kRegisters;
    const std::uint64_t more = place / kRegisters;
    if (more > ~last.record) break;
    last.record += more;
    last.pc += in.signed_varint();
    last.values.at(reg) += in.signed_varint();
    out.push_back(
        {last.record, TraceeAddr{last.pc}, last.values.at(reg), static_cast<std::uint8_t>(reg)});
  }
  if (in.good() && in.rest().empty() && out.size() - before == count) return {};
  out.resize(before);
  return malformed();
}

}  // namespace backtrail::decoder
