// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/persist/packed_pc_map.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "ptrace/codecache/persist/packed_numbers.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::translate::PcMapEntry;

constexpr unsigned kValuesShift = 8;
constexpr std::uint64_t kMostValues = 15;
constexpr std::uint64_t kRecording = 1U << 12U;

/// Returns the flags and what belongs to the values, as one number.
std::uint64_t state_of(const PcMapEntry& map_entry) {
  const std::uint64_t values = std::min<std::uint64_t>(map_entry.values, kMostValues);
  return map_entry.flags | values << kValuesShift | (map_entry.is_recording ? kRecording : 0);
}

void set_state(PcMapEntry& map_entry, std::uint64_t state) {
  map_entry.flags = static_cast<std::uint8_t>(state);
  map_entry.values = static_cast<std::uint8_t>(state >> kValuesShift & kMostValues);
  map_entry.is_recording = (state & kRecording) != 0;
}

/// Bits of an entry's first byte: which fields differ from the previous entry. The upper bits hold
/// the distance to it if that fits.
enum Difference : std::uint8_t { kPc = 1, kStack = 2, kPassed = 4, kState = 8 };
constexpr unsigned kDistanceShift = 4;
constexpr std::uint32_t kMostDistance = 15;

/// Most bytes of a packed entry: five numbers of at most 32, 64, 32, 16 and 13 bits, and the first.
constexpr std::ptrdiff_t kMostEntryBytes = 1 + 5 + kMostPackedBytes + 5 + 3 + 2;

/// Entries are packed in pieces of this size: most superblocks need one.
constexpr std::size_t kPieceBytes = 1024;

PcMapEntry next_entry(PackedReader& from, PcMapEntry map_entry) {
  const std::uint8_t first = from.byte();
  const std::uint32_t distance = first >> kDistanceShift;
  map_entry.offset += distance != 0 ? distance : static_cast<std::uint32_t>(from.number());
  if ((first & kPc) != 0) map_entry.pc = map_entry.pc + unfold_distance(from.number());
  if ((first & kStack) != 0)
    map_entry.stack_add = static_cast<std::int32_t>(unfold_distance(from.number()));
  if ((first & kPassed) != 0) map_entry.passed = static_cast<std::uint16_t>(from.number());
  if ((first & kState) != 0) set_state(map_entry, from.number());
  return map_entry;
}

}  // namespace

void pack_pc_map(std::span<const PcMapEntry> pc_map, TraceeAddr start,
                 std::vector<std::uint8_t>& out) {
  std::array<std::uint8_t, kPieceBytes> piece;  // NOLINT: written before it is read
  std::uint8_t* at = piece.data();
  const auto append_piece = [&] {
    out.insert(out.end(), piece.data(), at);
    at = piece.data();
  };
  const PcMapEntry before{.pc = start};
  const PcMapEntry* last = &before;
  std::uint64_t last_state = state_of(before);
  for (const PcMapEntry& map_entry : pc_map) {
    if (piece.data() + piece.size() - at < kMostEntryBytes) append_piece();
    const std::uint32_t distance = map_entry.offset - last->offset;
    const std::uint64_t state = state_of(map_entry);
    const bool is_near = distance != 0 && distance <= kMostDistance;
    unsigned first = is_near ? distance << kDistanceShift : 0;
    if (map_entry.pc != last->pc) first |= kPc;
    if (map_entry.stack_add != last->stack_add) first |= kStack;
    if (map_entry.passed != last->passed) first |= kPassed;
    if (state != last_state) first |= kState;
    *at++ = static_cast<std::uint8_t>(first);
    if (!is_near) at = put_number(distance, at);
    if ((first & kPc) != 0) at = put_number(fold_distance(map_entry.pc - last->pc), at);
    if ((first & kStack) != 0) {
      at = put_number(fold_distance(static_cast<std::uint64_t>(std::int64_t{map_entry.stack_add})),
                      at);
    }
    if ((first & kPassed) != 0) at = put_number(map_entry.passed, at);
    if ((first & kState) != 0) at = put_number(state, at);
    last = &map_entry;
    last_state = state;
  }
  append_piece();
}

std::optional<PcMapEntry> entry_at(std::span<const std::uint8_t> packed, TraceeAddr start,
                                   std::uint64_t offset) {
  PackedReader reader{packed};
  std::optional<PcMapEntry> found;
  PcMapEntry map_entry{.pc = start};
  while (!reader.at_end()) {
    map_entry = next_entry(reader, map_entry);
    if (map_entry.offset > offset) break;
    found = map_entry;
  }
  return found;
}

}  // namespace backtrail::tracee::cache
