// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/ds_dump.hpp"

#include <algorithm>

namespace backtrail::decoder {
namespace {

using arch::x86::BtsEntry;
using arch::x86::BtsQualifier;
using arch::x86::DsFormat;

bool all_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

void append(std::span<const std::uint8_t> bytes, DsFormat format, std::vector<BtsEntry>& out) {
  const std::size_t record = arch::x86::ds_layout(format).record_bytes();
  for (; bytes.size() >= record; bytes = bytes.subspan(record)) {
    // Memory that was never written is no record; it is not a broken one either.
    if (!all_zero(bytes.first(record))) out.push_back(arch::x86::read_bts_entry(bytes, format));
  }
}

/// Addresses below hold no code.
constexpr std::uint64_t kLowestCode = 4096;

/// Returns true if a branch can begin or end there. False shows that records were read from a wrong
/// place.
bool is_code(std::uint64_t address, std::size_t width) {
  constexpr unsigned kUnused = 7;  // Bits beyond the 57 of the largest address spaces.
  const auto extended = static_cast<std::int64_t>(address << kUnused) >> kUnused;
  return address >= kLowestCode &&
         (width == sizeof(std::uint32_t) || extended == static_cast<std::int64_t>(address));
}

bool are_records(const std::vector<BtsEntry>& entries, DsFormat format) {
  const std::size_t width = arch::x86::ds_layout(format).field_bytes;
  const auto makes_sense = [&](const BtsEntry& entry) {
    return entry.qualifier == BtsQualifier::kBranch
               ? is_code(entry.from, width) && is_code(entry.to, width)
               : entry.qualifier != BtsQualifier::kInvalid;
  };
  const auto good = std::count_if(entries.begin(), entries.end(), makes_sense);
  return entries.empty() || static_cast<std::size_t>(good) * 2 > entries.size();
}

/// Returns true if most branches begin shortly after the target of the previous one. Interrupts and
/// task switches break this, but only sometimes.
bool join(const std::vector<BtsEntry>& entries) {
  constexpr std::size_t kEnough = 2;
  constexpr std::uint64_t kLongestBlock = 64UL << 10U;
  std::size_t pairs = 0;
  std::size_t joined = 0;
  for (std::size_t i = 1; i < entries.size(); ++i) {
    const BtsEntry& before = entries[i - 1];
    const BtsEntry& entry = entries[i];
    if (before.qualifier != BtsQualifier::kBranch || entry.qualifier != BtsQualifier::kBranch)
      continue;
    ++pairs;
    joined += entry.from - before.to < kLongestBlock ? 1 : 0;
  }
  return pairs < kEnough || joined * 2 > pairs;
}

tl::unexpected<Error> no_records(std::uint64_t base) {
  return fail(
      TraceErrc::kMalformed,
      "no records where the BTS buffer should be: cut short, of another form, or an address "
      "(--base) is needed",
      base);
}

}  // namespace

std::vector<BtsEntry> read_bts_ring(std::span<const std::uint8_t> buffer, std::uint64_t index,
                                    bool wrapped, DsFormat format) {
  const std::size_t record = arch::x86::ds_layout(format).record_bytes();
  buffer = buffer.first(buffer.size() / record * record);
  const std::size_t split = std::min<std::size_t>(index / record * record, buffer.size());
  std::vector<BtsEntry> entries;
  entries.reserve(buffer.size() / record);
  if (wrapped) append(buffer.subspan(split), format, entries);
  append(buffer.first(split), format, entries);
  return entries;
}

Result<DsDump> read_ds_dump(std::span<const std::uint8_t> image, const DsDumpOptions& options) {
  BT_TRY(const arch::x86::DsArea area, arch::x86::parse_ds_area(image, options.format));
  const std::uint64_t size = area.bts.maximum - area.bts.base;
  const std::size_t area_bytes = arch::x86::ds_layout(options.format).area_bytes();
  if (!options.base && size > image.size() - area_bytes)
    return fail(TraceErrc::kMalformed, "cut short: the BTS buffer does not fit behind its pointers",
                size);
  std::uint64_t offset = image.size() - std::min<std::uint64_t>(size, image.size());
  if (options.base) {
    if (area.bts.base < *options.base || area.bts.base - *options.base > image.size())
      return fail(TraceErrc::kMalformed, "BTS buffer outside the image", area.bts.base);
    offset = area.bts.base - *options.base;
  }
  const auto buffer = image.subspan(offset, std::min<std::uint64_t>(size, image.size() - offset));
  DsDump dump{area, options.all, {}, size - buffer.size()};
  const std::uint64_t index = area.bts.index - area.bts.base;
  // With a threshold inside the buffer the CPU interrupts instead of wrapping. Records beyond the
  // index were then written before the system last emptied the buffer.
  const bool circular = area.bts.threshold == 0 || area.bts.threshold > area.bts.maximum;
  const bool went_round = circular && index < buffer.size() && !all_zero(buffer.subspan(index));
  dump.wrapped = dump.wrapped || went_round;
  dump.entries = read_bts_ring(buffer, index, dump.wrapped, options.format);
  // Every record below the index was written; those above it only if the CPU wrapped.
  const std::size_t record = arch::x86::ds_layout(options.format).record_bytes();
  // Pointers and the fields that they point to are naturally aligned.
  const bool aligned = offset % arch::x86::ds_layout(options.format).field_bytes == 0;
  const bool begins =
      (index == 0 && !went_round) || buffer.size() < record || !all_zero(buffer.first(record));
  if (!options.base &&
      !(aligned && begins && are_records(dump.entries, options.format) && join(dump.entries)))
    return no_records(area.bts.base);
  return dump;
}

}  // namespace backtrail::decoder
