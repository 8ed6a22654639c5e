// SPDX-License-Identifier: Apache-2.0
#include "ptrace/core/read_ahead.hpp"

#include <algorithm>
#include <chrono>
#include <future>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

/// Fills each part with a byte of its address.
std::uint64_t fill_by_address(std::span<const MemoryPart> parts, std::span<std::uint8_t> out) {
  for (const MemoryPart& part : parts) {
    std::fill_n(out.begin(), part.bytes, static_cast<std::uint8_t>(part.address));
    out = out.subspan(part.bytes);
  }
  return 0;
}

TEST(ReadAhead, HandsOutEveryPartInOrder) {
  constexpr std::size_t kMost = ReadAhead::kBatchBytes;
  std::vector<MemoryPart> parts;
  for (std::uint64_t i = 0; i < 12; ++i) {
    for (const std::size_t bytes : {std::size_t{4096}, kMost / 3, kMost}) {
      parts.push_back({i * 3 + bytes % 7, bytes});
    }
  }
  ReadAhead ahead{parts, fill_by_address};
  std::size_t seen = 0;
  while (const ReadAhead::Batch* batch = ahead.next()) {
    ASSERT_EQ(batch->first, seen);
    std::span<const std::uint8_t> bytes{batch->bytes};
    for (std::size_t i = 0; i < batch->count; ++i) {
      const MemoryPart& part = ahead.part(seen++);
      const auto mine = bytes.first(part.bytes);
      bytes = bytes.subspan(part.bytes);
      EXPECT_EQ(std::count(mine.begin(), mine.end(), static_cast<std::uint8_t>(part.address)),
                static_cast<std::ptrdiff_t>(part.bytes));
    }
    EXPECT_TRUE(bytes.empty());
  }
  EXPECT_EQ(seen, parts.size());
}

TEST(ReadAhead, SmallPartsAreReadTogether) {
  std::size_t calls = 0;
  const std::vector<MemoryPart> parts(200, MemoryPart{0, 4096});
  ReadAhead ahead{parts, [&](std::span<const MemoryPart> some, std::span<std::uint8_t>) {
                    ++calls;
                    return some.size();
                  }};
  const ReadAhead::Batch* batch = ahead.next();
  ASSERT_NE(batch, nullptr);
  EXPECT_EQ(batch->count, 200U);
  EXPECT_EQ(batch->unreadable_bytes, 200U);
  EXPECT_EQ(ahead.next(), nullptr);
  EXPECT_EQ(calls, 1U);
}

TEST(ReadAhead, TheNextBatchIsReadWhileOneIsUsed) {
  std::promise<void> second_read;
  std::size_t calls = 0;
  const std::vector<MemoryPart> parts(2, MemoryPart{0, ReadAhead::kBatchBytes});
  ReadAhead ahead{parts, [&](std::span<const MemoryPart>, std::span<std::uint8_t>) {
                    if (++calls == 2) second_read.set_value();
                    return std::uint64_t{0};
                  }};
  ASSERT_NE(ahead.next(), nullptr);
  EXPECT_EQ(second_read.get_future().wait_for(std::chrono::seconds{60}), std::future_status::ready);
}

TEST(ReadAhead, MayBeLeftInTheMiddle) {
  const std::vector<MemoryPart> parts(3, MemoryPart{7, ReadAhead::kBatchBytes});
  ReadAhead ahead{parts, fill_by_address};
  EXPECT_NE(ahead.next(), nullptr);
}

}  // namespace
}  // namespace backtrail::tracee
