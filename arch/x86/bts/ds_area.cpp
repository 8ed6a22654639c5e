// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/bts/ds_area.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "arch/base/bytes.hpp"
#include "arch/base/check.hpp"

namespace backtrail::arch::x86 {
namespace {

constexpr std::uint64_t bit(unsigned number) {
  return std::uint64_t{1} << number;
}

constexpr DebugCtlBits kNetBurstBits{bit(2), bit(3), bit(4), bit(5), bit(6)};

// In the order of DsFormat.
constexpr std::array kLayouts{
    DsLayout{4, kNetBurstBits, true},
    DsLayout{8, kNetBurstBits, true},
    DsLayout{4, {bit(6), bit(7), bit(8)}, false},
    DsLayout{8, {bit(6), bit(7), bit(8), bit(9), bit(10)}, false},
};

constexpr std::array<std::pair<DsFormat, std::string_view>, 4> kNames{{
    {DsFormat::kNetBurst, "netburst"},
    {DsFormat::kNetBurst64, "netburst64"},
    {DsFormat::kPentiumM, "pentium-m"},
    {DsFormat::kCore2, "core2"},
}};

constexpr unsigned kTimestampBits = 56;

std::uint64_t load_field(const std::uint8_t* at, std::size_t bytes) {
  return bytes == 4 ? load_le<std::uint32_t>(at) : load_le<std::uint64_t>(at);
}

void store_field(std::uint8_t* at, std::size_t bytes, std::uint64_t value) {
  if (bytes == 4) {
    store_le(at, static_cast<std::uint32_t>(value));
  } else {
    store_le(at, value);
  }
}

DsBuffer load_buffer(const std::uint8_t* at, std::size_t bytes) {
  return {load_field(at, bytes), load_field(at + bytes, bytes), load_field(at + 2 * bytes, bytes),
          load_field(at + 3 * bytes, bytes)};
}

}  // namespace

std::string_view to_string(DsFormat format) {
  return kNames[static_cast<std::size_t>(format)].second;
}

std::optional<DsFormat> ds_format_from(std::string_view name) {
  const auto* found = std::find_if(kNames.begin(), kNames.end(),
                                   [&](const auto& row) { return row.second == name; });
  if (found == kNames.end()) return std::nullopt;
  return found->first;
}

std::optional<DsFormat> ds_format_of(unsigned family, unsigned model, bool long_mode) {
  if (family == 15) return long_mode ? DsFormat::kNetBurst64 : DsFormat::kNetBurst;
  if (family != 6) return std::nullopt;
  // Model 9 is the first Pentium M. Only models 13 and 14 (the first Core) have a usable store.
  if (model == 13 || model == 14) return DsFormat::kPentiumM;
  if (model < 15) return std::nullopt;
  return DsFormat::kCore2;
}

const DsLayout& ds_layout(DsFormat format) {
  return kLayouts[static_cast<std::size_t>(format)];
}

Result<DsArea> parse_ds_area(std::span<const std::uint8_t> bytes, DsFormat format) {
  const DsLayout& layout = ds_layout(format);
  if (bytes.size() < layout.area_bytes())
    return fail(TraceErrc::kMalformed, "DS save area", bytes.size());
  const std::size_t width = layout.field_bytes;
  DsArea area{load_buffer(bytes.data(), width), load_buffer(bytes.data() + 4 * width, width),
              load_le<std::uint64_t>(bytes, 8 * width)};
  const DsBuffer& bts = area.bts;
  if (bts.base > bts.index || bts.index > bts.maximum)
    return fail(TraceErrc::kMalformed, "BTS pointers", bts.index);
  if ((bts.index - bts.base) % layout.record_bytes() != 0)
    return fail(TraceErrc::kMalformed, "BTS index", bts.index);
  return area;
}

BtsEntry read_bts_entry(std::span<const std::uint8_t> bytes, DsFormat format) {
  const DsLayout& layout = ds_layout(format);
  const std::size_t width = layout.field_bytes;
  BT_CHECK(bytes.size() >= layout.record_bytes());
  BtsEntry entry;
  entry.from = load_field(bytes.data(), width);
  if (entry.from != 0) {
    entry.qualifier = BtsQualifier::kBranch;
    entry.to = load_field(bytes.data() + width, width);
    if (layout.has_predicted_flag)
      entry.predicted = (load_field(bytes.data() + 2 * width, width) & kBtsPredicted) != 0;
    return entry;
  }
  const auto escape = load_le<std::uint64_t>(bytes, width);
  const auto qualifier = escape & 0xff;
  if (qualifier == static_cast<std::uint64_t>(BtsQualifier::kTaskArrives) ||
      qualifier == static_cast<std::uint64_t>(BtsQualifier::kTaskDeparts)) {
    entry.qualifier = static_cast<BtsQualifier>(qualifier);
    entry.timestamp = escape >> (64 - kTimestampBits);
  }
  return entry;
}

void write_bts_entry(const BtsEntry& entry, DsFormat format, std::span<std::uint8_t> out) {
  const DsLayout& layout = ds_layout(format);
  const std::size_t width = layout.field_bytes;
  BT_CHECK(out.size() >= layout.record_bytes());
  std::fill_n(out.begin(), layout.record_bytes(), std::uint8_t{0});
  if (entry.qualifier == BtsQualifier::kBranch) {
    store_field(out.data(), width, entry.from);
    store_field(out.data() + width, width, entry.to);
    if (entry.predicted.value_or(false)) store_field(out.data() + 2 * width, width, kBtsPredicted);
    return;
  }
  store_le(out.data() + width,
           static_cast<std::uint64_t>(entry.qualifier) | entry.timestamp << (64 - kTimestampBits));
}

}  // namespace backtrail::arch::x86
