// SPDX-License-Identifier: Apache-2.0
#include "decoder/bts/ds_dump.hpp"

#include <gtest/gtest.h>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder {
namespace {

using arch::x86::BtsQualifier;
using arch::x86::DsFormat;

constexpr std::uint64_t kBase = 0x10000;

/// Returns a save area and its buffer of `slots` records, to which `written` branches were written.
std::vector<std::uint8_t> image_of(DsFormat format, std::uint64_t slots, std::uint64_t written,
                                   bool circular) {
  const auto& layout = arch::x86::ds_layout(format);
  const std::size_t record = layout.record_bytes();
  const std::size_t buffer_at = (layout.area_bytes() + 63) / 64 * 64;
  std::vector<std::uint8_t> image(buffer_at + slots * record);
  const auto put = [&](std::size_t field, std::uint64_t value) {
    std::uint8_t* at = image.data() + field * layout.field_bytes;
    if (layout.field_bytes == 4) {
      store_le(at, static_cast<std::uint32_t>(value));
    } else {
      store_le(at, value);
    }
  };
  const std::uint64_t base = kBase + buffer_at;
  put(0, base);
  put(1, base + written % slots * record);
  put(2, base + slots * record);
  put(3, circular ? base + slots * record + 1 : base);
  for (std::uint64_t i = 0; i < written; ++i) {
    arch::x86::write_bts_entry({BtsQualifier::kBranch, 0x1000 + i, 0x1001 + i, false, 0}, format,
                               std::span{image}.subspan(buffer_at + i % slots * record));
  }
  return image;
}

TEST(DsDump, ReadsEveryFillLevelOldestFirst) {
  for (const DsFormat format :
       {DsFormat::kNetBurst, DsFormat::kNetBurst64, DsFormat::kPentiumM, DsFormat::kCore2}) {
    constexpr std::uint64_t kSlots = 5;
    for (std::uint64_t written = 0; written < 3 * kSlots; ++written) {
      const auto image = image_of(format, kSlots, written, true);
      const auto dump = read_ds_dump(image, {format, kBase, false});
      ASSERT_TRUE(dump);
      ASSERT_EQ(dump->entries.size(), std::min(written, kSlots));
      EXPECT_EQ(dump->wrapped, written >= kSlots);
      for (std::uint64_t i = 0; i < dump->entries.size(); ++i)
        EXPECT_EQ(dump->entries[i].from, 0x1000 + written - dump->entries.size() + i);
      // The buffer ends the image, so its address is not needed.
      const auto guessed = read_ds_dump(image, {format, std::nullopt, false});
      ASSERT_TRUE(guessed);
      EXPECT_EQ(guessed->entries, dump->entries);
    }
  }
}

TEST(DsDump, WhatTheSystemEmptiedIsShownOnRequestOnly) {
  auto image = image_of(DsFormat::kCore2, 8, 5, false);
  store_le(image.data() + 8, load_le<std::uint64_t>(image, 0));  // index = base
  const auto empty = read_ds_dump(image, {DsFormat::kCore2, kBase, false});
  ASSERT_TRUE(empty);
  EXPECT_TRUE(empty->entries.empty());
  const auto all = read_ds_dump(image, {DsFormat::kCore2, kBase, true});
  ASSERT_TRUE(all);
  EXPECT_EQ(all->entries.size(), 5U);
}

TEST(DsDump, TaskMarksStandAmongTheBranches) {
  auto image = image_of(DsFormat::kPentiumM, 4, 4, true);
  auto slot = std::span{image}.last(3 * 12);
  arch::x86::write_bts_entry({BtsQualifier::kTaskDeparts, 0, 0, std::nullopt, 77},
                             DsFormat::kPentiumM, slot);
  arch::x86::write_bts_entry({BtsQualifier::kTaskArrives, 0, 0, std::nullopt, 99},
                             DsFormat::kPentiumM, slot.subspan(12));
  const auto dump = read_ds_dump(image, {DsFormat::kPentiumM, kBase, false});
  ASSERT_TRUE(dump);
  ASSERT_EQ(dump->entries.size(), 4U);
  EXPECT_EQ(dump->entries[1].qualifier, BtsQualifier::kTaskDeparts);
  EXPECT_EQ(dump->entries[1].timestamp, 77U);
  EXPECT_EQ(dump->entries[2].qualifier, BtsQualifier::kTaskArrives);
  EXPECT_EQ(dump->entries[2].timestamp, 99U);
}

TEST(DsDump, AShortImageSaysWhatIsMissing) {
  const auto image = image_of(DsFormat::kCore2, 10, 10, true);
  const auto dump =
      read_ds_dump(std::span{image}.first(image.size() - 50), {DsFormat::kCore2, kBase, true});
  ASSERT_TRUE(dump);
  EXPECT_EQ(dump->missing_bytes, 50U);
  EXPECT_EQ(dump->entries.size(), 7U);
  EXPECT_FALSE(read_ds_dump(image, {DsFormat::kCore2, kBase + 0x10000, false}));
  EXPECT_FALSE(read_ds_dump({}, {}));
}

TEST(DsDump, CutShortItIsNoDumpUnlessItsAddressIsKnown) {
  for (const DsFormat format :
       {DsFormat::kNetBurst, DsFormat::kNetBurst64, DsFormat::kPentiumM, DsFormat::kCore2}) {
    for (const std::uint64_t written : {4U, 10U, 13U}) {
      const auto image = image_of(format, 10, written, true);
      ASSERT_TRUE(read_ds_dump(image, {format, std::nullopt, false}));
      for (std::size_t size = 0; size < image.size(); ++size) {
        const auto cut = std::span{image}.first(size);
        ASSERT_FALSE(read_ds_dump(cut, {format, std::nullopt, false}))
            << to_string(format) << ", " << size << " of " << image.size();
        const auto known = read_ds_dump(cut, {format, kBase, true});
        if (known) {
          EXPECT_EQ(known->missing_bytes, image.size() - size);
        }
      }
    }
  }
}

TEST(DsDump, ABufferWithoutRecordsIsToldApartFromAnEmptyOne) {
  auto image = image_of(DsFormat::kCore2, 8, 0, false);
  EXPECT_TRUE(read_ds_dump(image, {DsFormat::kCore2, std::nullopt, true}));
  // Text, with an index that claims that all of it was written.
  std::fill(image.end() - std::ptrdiff_t{8} * 24, image.end(), std::uint8_t{'a'});
  store_le(image.data() + 8, load_le<std::uint64_t>(image, 16));
  EXPECT_FALSE(read_ds_dump(image, {DsFormat::kCore2, std::nullopt, false}));
  EXPECT_TRUE(read_ds_dump(image, {DsFormat::kCore2, kBase, false}));
}

TEST(DsDump, OddBytesBehindTheLastRecordAreNoRecord) {
  std::vector<std::uint8_t> buffer(3 * 24 + 17, 0xee);
  EXPECT_EQ(read_bts_ring(buffer, 24, true, DsFormat::kCore2).size(), 3U);
  EXPECT_EQ(read_bts_ring(buffer, 24, false, DsFormat::kCore2).size(), 1U);
  EXPECT_EQ(read_bts_ring(buffer, 1000, false, DsFormat::kCore2).size(), 3U);
}

}  // namespace
}  // namespace backtrail::decoder
