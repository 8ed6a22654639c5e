#include "decoder/bts/ds_dump.hpp"

#include <algorithm>

namespace backtrail::decoder {
namespace {

using arch::x86::BtsEntry;
using arch::x86::DsFormat;

bool all_zero(std::span<const std::uint8_t> bytes) {
  return std::all_of(bytes.begin(), bytes.end(), [](std::uint8_t byte) { return byte == 0; });
}

void append(std::span<const std::uint8_t> bytes, DsFormat format, std::vector<BtsEntry>& out) {
  const std::size_t record = arch::x86::ds_layout(format).record_bytes();
  for (; bytes.size() >= record; bytes = bytes.subspan(record)) {
    // Memory that was never written is no record, not a broken one.
    if (!all_zero(bytes.first(record))) out.push_back(arch::x86::read_bts_entry(bytes, format));
  }
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
  std::uint64_t offset = image.size() - std::min<std::uint64_t>(size, image.size());
  if (options.base) {
    if (area.bts.base < *options.base || area.bts.base - *options.base > image.size())
      return fail(TraceErrc::kMalformed, "BTS buffer outside the image", area.bts.base);
    offset = area.bts.base - *options.base;
  }
  const auto buffer = image.subspan(offset, std::min<std::uint64_t>(size, image.size() - offset));
  DsDump dump{area, options.all, {}, size - buffer.size()};
  const std::uint64_t index = area.bts.index - area.bts.base;
  // A threshold inside the buffer means that the CPU interrupts instead of wrapping: then what lies
  // beyond the index was written before the system emptied the buffer.
  const bool circular = area.bts.threshold == 0 || area.bts.threshold > area.bts.maximum;
  if (circular && index < buffer.size() && !all_zero(buffer.subspan(index))) dump.wrapped = true;
  dump.entries = read_bts_ring(buffer, index, dump.wrapped, options.format);
  return dump;
}

}  // namespace backtrail::decoder
