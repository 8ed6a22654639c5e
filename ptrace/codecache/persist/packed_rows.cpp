// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/packed_rows.hpp"

#include "ptrace/codecache/persist/packed_numbers.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::x86::translate::PcRow;

/// Bits of an entry's first byte: which fields differ from the previous entry. The upper bits hold
/// the distance to it if that fits.
enum Difference : std::uint8_t { kPc = 1, kStack = 2, kPassed = 4, kFlags = 8 };
constexpr unsigned kDistanceShift = 4;
constexpr std::uint32_t kMostDistance = 15;

PcRow next_row(PackedReader& from, PcRow row) {
  const std::uint8_t first = from.byte();
  const std::uint32_t distance = first >> kDistanceShift;
  row.offset += distance != 0 ? distance : static_cast<std::uint32_t>(from.number());
  if ((first & kPc) != 0) row.pc = row.pc + unfold_distance(from.number());
  if ((first & kStack) != 0)
    row.stack_add = static_cast<std::int32_t>(unfold_distance(from.number()));
  if ((first & kPassed) != 0) row.passed = static_cast<std::uint16_t>(from.number());
  if ((first & kFlags) != 0) row.flags = from.byte();
  return row;
}

}  // namespace

void pack_rows(std::span<const PcRow> rows, TraceeAddr head, std::vector<std::uint8_t>& out) {
  PcRow last{.pc = head};
  for (const PcRow& row : rows) {
    const std::uint32_t distance = row.offset - last.offset;
    const bool is_near = distance != 0 && distance <= kMostDistance;
    unsigned first = is_near ? distance << kDistanceShift : 0;
    if (row.pc != last.pc) first |= kPc;
    if (row.stack_add != last.stack_add) first |= kStack;
    if (row.passed != last.passed) first |= kPassed;
    if (row.flags != last.flags) first |= kFlags;
    out.push_back(static_cast<std::uint8_t>(first));
    if (!is_near) put_number(distance, out);
    if ((first & kPc) != 0) put_number(fold_distance(row.pc - last.pc), out);
    if ((first & kStack) != 0) {
      put_number(fold_distance(static_cast<std::uint64_t>(std::int64_t{row.stack_add})), out);
    }
    if ((first & kPassed) != 0) put_number(row.passed, out);
    if ((first & kFlags) != 0) out.push_back(row.flags);
    last = row;
  }
}

std::optional<PcRow> row_at(std::span<const std::uint8_t> packed, TraceeAddr head,
                            std::uint64_t offset) {
  PackedReader reader{packed};
  std::optional<PcRow> found;
  PcRow row{.pc = head};
  while (!reader.at_end()) {
    row = next_row(reader, row);
    if (row.offset > offset) break;
    found = row;
  }
  return found;
}

}  // namespace backtrail::tracee::cache
