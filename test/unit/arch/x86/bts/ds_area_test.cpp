// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/bts/ds_area.hpp"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "arch/base/bytes.hpp"

namespace backtrail::arch::x86 {
namespace {

constexpr std::array kFormats{DsFormat::kNetBurst, DsFormat::kNetBurst64, DsFormat::kPentiumM,
                              DsFormat::kCore2};

TEST(DsArea, BelongsToTheCpusThatHaveIt) {
  EXPECT_EQ(ds_format_of(6, 13, false), DsFormat::kPentiumM);
  EXPECT_EQ(ds_format_of(6, 14, false), DsFormat::kPentiumM);
  EXPECT_EQ(ds_format_of(6, 15, false), DsFormat::kCore2);
  EXPECT_EQ(ds_format_of(6, 15, true), DsFormat::kCore2);
  EXPECT_EQ(ds_format_of(6, 158, true), DsFormat::kCore2);
  for (unsigned model = 0; model < 4; ++model) {
    EXPECT_EQ(ds_format_of(15, model, false), DsFormat::kNetBurst);
    EXPECT_EQ(ds_format_of(15, model, true), DsFormat::kNetBurst64);
  }
  EXPECT_EQ(ds_format_of(6, 8, false), std::nullopt);
  EXPECT_EQ(ds_format_of(5, 2, false), std::nullopt);
}

TEST(DsArea, HasTheFieldWidthsOfTheManual) {
  EXPECT_EQ(ds_layout(DsFormat::kNetBurst).field_bytes, 4U);
  EXPECT_EQ(ds_layout(DsFormat::kPentiumM).field_bytes, 4U);
  EXPECT_EQ(ds_layout(DsFormat::kNetBurst64).field_bytes, 8U);
  EXPECT_EQ(ds_layout(DsFormat::kCore2).field_bytes, 8U);
}

TEST(DsArea, HasRecordsOfThreeFields) {
  EXPECT_EQ(ds_layout(DsFormat::kNetBurst).record_bytes(), 12U);
  EXPECT_EQ(ds_layout(DsFormat::kPentiumM).record_bytes(), 12U);
  EXPECT_EQ(ds_layout(DsFormat::kNetBurst64).record_bytes(), 24U);
  EXPECT_EQ(ds_layout(DsFormat::kCore2).record_bytes(), 24U);
}

TEST(DsArea, HasTheEnableBitsOfTheManual) {
  const DebugCtlBits& netburst = ds_layout(DsFormat::kNetBurst).debugctl;
  EXPECT_EQ(netburst.trace, 1U << 2U);
  EXPECT_EQ(netburst.store, 1U << 3U);
  EXPECT_EQ(netburst.interrupt, 1U << 4U);
  EXPECT_EQ(netburst.not_in_kernel, 1U << 5U);
  EXPECT_EQ(netburst.not_in_user, 1U << 6U);
  const DebugCtlBits& pentium_m = ds_layout(DsFormat::kPentiumM).debugctl;
  EXPECT_EQ(pentium_m.trace, 1U << 6U);
  EXPECT_EQ(pentium_m.store, 1U << 7U);
  EXPECT_EQ(pentium_m.interrupt, 1U << 8U);
  EXPECT_EQ(pentium_m.not_in_kernel, 0U);  // The CPU has no DS_CPL.
  const DebugCtlBits& core2 = ds_layout(DsFormat::kCore2).debugctl;
  EXPECT_EQ(core2.not_in_kernel, 1U << 9U);
  EXPECT_EQ(core2.not_in_user, 1U << 10U);
}

TEST(DsArea, ReadsItsNineFieldsInOrder) {
  for (const DsFormat format : kFormats) {
    const std::size_t width = ds_layout(format).field_bytes;
    const std::size_t record = ds_layout(format).record_bytes();
    std::vector<std::uint8_t> bytes(ds_layout(format).area_bytes());
    const std::array<std::uint64_t, 8> fields{
        0x1000, 0x1000 + 2 * record, 0x2000, 0x1f00, 0x5000, 0x5010, 0x6000, 0x5f00};
    for (std::size_t i = 0; i < fields.size(); ++i) {
      if (width == 4) {
        store_le(bytes.data() + i * width, static_cast<std::uint32_t>(fields.at(i)));
      } else {
        store_le(bytes.data() + i * width, fields.at(i));
      }
    }
    store_le(bytes.data() + 8 * width, std::uint64_t{0xffff'ff00'0000'1234});
    const auto area = parse_ds_area(bytes, format);
    ASSERT_TRUE(area) << to_string(format);
    EXPECT_EQ(area->bts.base, fields[0]);
    EXPECT_EQ(area->bts.index, fields[1]);
    EXPECT_EQ(area->bts.maximum, fields[2]);
    EXPECT_EQ(area->bts.threshold, fields[3]);
    EXPECT_EQ(area->pebs.base, fields[4]);
    EXPECT_EQ(area->pebs.threshold, fields[7]);
    EXPECT_EQ(area->pebs_reset, 0xffff'ff00'0000'1234U);

    for (std::size_t size = 0; size < bytes.size(); ++size)
      EXPECT_FALSE(parse_ds_area(std::span{bytes}.first(size), format));
    bytes[width] =
        static_cast<std::uint8_t>(bytes[width] + 1);  // The index is not at a record boundary.
    EXPECT_FALSE(parse_ds_area(bytes, format));
    bytes[width + 1] = 0x30;  // The index is beyond the maximum.
    EXPECT_FALSE(parse_ds_area(bytes, format));
  }
}

TEST(DsArea, RecordsOfAllKindsComeBackAsWritten) {
  for (const DsFormat format : kFormats) {
    const bool wide = ds_layout(format).field_bytes == 8;
    const std::uint64_t high = wide ? 0x7fff'0000'0000 : 0;
    const std::array<BtsEntry, 5> entries{{
        {BtsQualifier::kBranch, high + 0x8048000, high + 0x8048123, false, 0},
        {BtsQualifier::kBranch, high + 0xbfff0000, 1, true, 0},
        {BtsQualifier::kTaskArrives, 0, 0, std::nullopt, 0x00ff'ffff'ffff'ffff},
        {BtsQualifier::kTaskDeparts, 0, 0, std::nullopt, 1},
        {},
    }};
    for (const BtsEntry& entry : entries) {
      std::vector<std::uint8_t> bytes(ds_layout(format).record_bytes(), 0xaa);
      write_bts_entry(entry, format, bytes);
      BtsEntry expected = entry;
      if (!ds_layout(format).has_predicted_flag) expected.predicted.reset();
      EXPECT_EQ(read_bts_entry(bytes, format), expected) << to_string(format);
    }
  }
}

TEST(DsArea, ABranchIsItsTwoAddressesInOrder) {
  std::array<std::uint8_t, 24> bytes{};
  store_le(bytes.data(), std::uint64_t{0x7fff'0000'1000});
  store_le(bytes.data() + 8, std::uint64_t{0x7fff'0000'2000});
  const BtsEntry wide = read_bts_entry(bytes, DsFormat::kCore2);
  EXPECT_EQ(wide.qualifier, BtsQualifier::kBranch);
  EXPECT_EQ(wide.from, 0x7fff'0000'1000U);
  EXPECT_EQ(wide.to, 0x7fff'0000'2000U);
}

TEST(DsArea, BothWidthsGiveOneForm) {
  std::array<std::uint8_t, 12> narrow{};
  std::array<std::uint8_t, 24> wide{};
  store_le(narrow.data(), std::uint32_t{0xbfff'1000});
  store_le(narrow.data() + 4, std::uint32_t{0x8048'000});
  store_le(wide.data(), std::uint64_t{0xbfff'1000});
  store_le(wide.data() + 8, std::uint64_t{0x8048'000});
  EXPECT_EQ(read_bts_entry(narrow, DsFormat::kPentiumM), read_bts_entry(wide, DsFormat::kCore2));
}

TEST(DsArea, AnEscapeRecordHoldsAQualifierAndATime) {
  // `from` is 0; then 8 bits of qualifier below 56 bits of time.
  const BtsEntry departs{BtsQualifier::kTaskDeparts, 0, 0, std::nullopt, 0x12'3456'789a'bcde};
  std::array<std::uint8_t, 24> bytes{};
  bytes.fill(0xaa);
  write_bts_entry(departs, DsFormat::kCore2, bytes);
  EXPECT_EQ(load_le<std::uint64_t>(bytes.data()), 0U);
  EXPECT_EQ(read_bts_entry(bytes, DsFormat::kCore2), departs);
}

TEST(DsArea, QualifiersHaveTheNumbersOfTheFirstInterface) {
  EXPECT_EQ(static_cast<int>(BtsQualifier::kInvalid), 0);
  EXPECT_EQ(static_cast<int>(BtsQualifier::kBranch), 1);
  EXPECT_EQ(static_cast<int>(BtsQualifier::kTaskArrives), 2);
  EXPECT_EQ(static_cast<int>(BtsQualifier::kTaskDeparts), 3);
}

TEST(DsArea, FlagsMeanNothingWhereTheCpuLeavesThemUnused) {
  std::array<std::uint8_t, 24> bytes{};
  bytes[0] = 1;
  bytes.fill(0xff);
  EXPECT_EQ(read_bts_entry(bytes, DsFormat::kCore2).predicted, std::nullopt);
  EXPECT_EQ(read_bts_entry(bytes, DsFormat::kPentiumM).predicted, std::nullopt);
  EXPECT_EQ(read_bts_entry(bytes, DsFormat::kNetBurst64).predicted, true);
}

TEST(DsArea, FormatsHaveNames) {
  for (const DsFormat format : kFormats) EXPECT_EQ(ds_format_from(to_string(format)), format);
  EXPECT_EQ(ds_format_from("core3"), std::nullopt);
}

}  // namespace
}  // namespace backtrail::arch::x86
