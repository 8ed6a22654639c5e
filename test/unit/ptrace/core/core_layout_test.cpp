// SPDX-License-Identifier: Apache-2.0
// Writes headers of cores and reads them back.
#include "ptrace/core/core_layout.hpp"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "decoder/corefile/core_file.hpp"
#include "ptrace/core/core_notes.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::SizeIs;

/// Makes a core with one thread and `loads` empty segments of one page each.
std::vector<std::uint8_t> core_with(arch::Isa isa, std::size_t loads) {
  CoreNotes notes;
  notes.isa = isa;
  notes.signal = 11;
  notes.threads.resize(1);
  notes.threads[0].tid = 7;
  const std::vector<std::uint8_t> bytes = notes.build();
  CoreLayout layout;
  layout.isa = isa;
  layout.notes_offset = CoreLayout::header_bytes(isa, loads);
  layout.notes_bytes = bytes.size();
  for (std::size_t i = 0; i < loads; ++i) {
    layout.loads.push_back({.address = 0x1000 + i * 0x2000, .memory_bytes = 0x1000});
  }
  std::vector<std::uint8_t> file = layout.headers();
  EXPECT_EQ(file.size(), layout.notes_offset);
  file.insert(file.end(), bytes.begin(), bytes.end());
  return file;
}

TEST(CoreLayout, BothWidthsAreReadBack) {
  for (const arch::Isa isa : {arch::Isa::kAmd64, arch::Isa::kI386}) {
    const auto file = core_with(isa, 3);
    const auto core = decoder::CoreFile::parse(file);
    ASSERT_TRUE(core) << core.error().message();
    EXPECT_EQ(core->isa(), isa);
    EXPECT_THAT(core->segments(), SizeIs(3));
    EXPECT_EQ(core->threads().front().tid, 7U);
    EXPECT_EQ(core->threads().front().signal, 11);
    EXPECT_NE(core->segment_at(TraceeAddr{0x3fff}), nullptr);
    EXPECT_EQ(core->segment_at(TraceeAddr{0x4000}), nullptr);
  }
}

TEST(CoreLayout, MoreSegmentsThanTheHeaderCanCount) {
  for (const std::size_t loads : {65532U, 65533U, 65534U, 70000U}) {
    const auto file = core_with(arch::Isa::kAmd64, loads);
    const auto core = decoder::CoreFile::parse(file);
    ASSERT_TRUE(core) << core.error().message();
    EXPECT_THAT(core->segments(), SizeIs(loads));
  }
}

TEST(CoreFile, NothingThatIsDamagedBreaksIt) {
  const auto file = core_with(arch::Isa::kAmd64, 3);
  std::vector<std::uint8_t> out(4096);
  const auto look = [&](std::span<const std::uint8_t> bytes) {
    const auto core = decoder::CoreFile::parse(bytes);
    if (!core) return;
    for (const auto& segment : core->segments()) (void)core->read(segment.start, out);
    (void)core->mapping_at(TraceeAddr{0x1000});
  };
  for (std::size_t size = 0; size < file.size(); ++size) look(std::span{file}.first(size));
  for (std::size_t at = 0; at < file.size(); ++at) {
    for (const unsigned value : {0x00U, 0x01U, 0x7fU, 0x80U, 0xffU}) {
      std::vector<std::uint8_t> damaged = file;
      damaged[at] = static_cast<std::uint8_t>(value);
      look(damaged);
    }
    std::vector<std::uint8_t> damaged = file;
    std::fill_n(damaged.begin() + static_cast<std::ptrdiff_t>(at),
                std::min<std::size_t>(4, file.size() - at), std::uint8_t{0xff});
    look(damaged);
  }
}

TEST(CoreFile, WhatIsNoCoreIsAnError) {
  EXPECT_FALSE(decoder::CoreFile::parse({}));
  auto file = core_with(arch::Isa::kAmd64, 0);
  file[16] = 2;  // ET_EXEC
  EXPECT_FALSE(decoder::CoreFile::parse(file));
}

}  // namespace
}  // namespace backtrail::tracee
