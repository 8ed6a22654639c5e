// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/value_facts.hpp"

#include <algorithm>
#include <array>

#include "decoder/corefile/bytes.hpp"
#include "decoder/corefile/trace_blocks.hpp"

namespace backtrail::decoder {
namespace {

/// A block's version says how many kinds of values there may be; records are counted in steps of
/// that.
constexpr std::uint64_t kRegisters = 16;
constexpr std::uint64_t kKinds = 64;
static_assert(arch::kOldBytesKind == kRegisters && arch::kFactKinds <= kKinds);

/// Returns the version of a block whose facts have kinds up to this one.
std::uint32_t version_for(arch::ValueKind highest) {
  if (highest < arch::kOldBytesKind) return kFactsVersion;
  if (highest < arch::kFlagsKind) return kOldBytesVersion;
  if (arch::is_of_memory(highest)) return kMemoryVersion;
  return arch::is_of_code(highest) ? kCodeVersion : kAllFactsVersion;
}

/// The numbers that differences are counted from. A register's values are mostly near its last one.
struct Last {
  std::uint64_t record = 0;
  std::uint64_t pc = 0;
  std::array<std::uint64_t, arch::kFactKinds> values{};
};

void encode(const ValueFact& fact, std::uint64_t shift, std::uint64_t kinds, Last& last,
            ByteWriter& out) {
  const std::uint64_t record = fact.record - shift;
  std::uint64_t& value = last.values.at(fact.kind);
  out.varint((record - last.record) * kinds + fact.kind);
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
    const auto end = next + static_cast<std::ptrdiff_t>(count);
    const auto highest = std::max_element(next, end, [](const ValueFact& a, const ValueFact& b) {
                           return a.kind < b.kind;
                         })->kind;
    const std::uint32_t version = version_for(highest);
    const std::uint64_t kinds = version == kFactsVersion ? kRegisters : kKinds;
    while (next != end) encode(*next++, shift, kinds, last, raw);
    append_packed({.magic = kFactsMagic, .tid = tid, .records = version, .first = first},
                  raw.bytes(), out);
  }
}

Result<void> decode_facts(const TraceBlock& block, std::vector<ValueFact>& out) {
  const auto malformed = [&] {
    return fail(TraceErrc::kMalformed, "decode a block of recorded values", block.first);
  };
  if (block.records < kFactsVersion || block.records > kMemoryVersion) return malformed();
  const std::uint64_t kinds = block.records == kFactsVersion ? kRegisters : kKinds;
  BT_TRY(const auto raw, unpack_block(block));
  ByteReader in{raw};
  const std::size_t before = out.size();
  const std::uint64_t count = in.varint();
  const bool ascends = out.empty() || out.back().record <= block.first;
  if (count > kBlockFacts || !ascends) return malformed();
  Last last{.record = block.first};
  for (std::uint64_t i = 0; i < count && in.good(); ++i) {
    const std::uint64_t place = in.varint();
    const auto kind = static_cast<arch::ValueKind>(place % kinds);
    const std::uint64_t more = place / kinds;
    if (more > ~last.record || kind >= arch::kFactKinds) break;
    last.record += more;
    last.pc += in.signed_varint();
    last.values.at(kind) += in.signed_varint();
    out.push_back({last.record, TraceeAddr{last.pc}, last.values.at(kind), kind});
  }
  if (in.good() && in.rest().empty() && out.size() - before == count) return {};
  out.resize(before);
  return malformed();
}

}  // namespace backtrail::decoder
