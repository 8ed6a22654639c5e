// SPDX-License-Identifier: Apache-2.0
// Pieces of data in an unnamed file.
#include "server/record/spool_file.hpp"

#include <csignal>
#include <map>
#include <random>

#include <gtest/gtest.h>
#include <sys/resource.h>

#include "test/support/temporary_folder.hpp"

namespace backtrail::server {
namespace {

std::vector<std::uint8_t> bytes_for(std::uint32_t number, std::size_t size) {
  std::vector<std::uint8_t> out(size);
  std::mt19937 random{number};
  for (std::uint8_t& byte : out) byte = static_cast<std::uint8_t>(random());
  return out;
}

TEST(SpoolFile, PiecesComeAndGoInAnyOrder) {
  const test::TemporaryFolder folder;
  SpoolFile file{folder.path()};
  EXPECT_TRUE(folder.names().empty());
  std::map<std::uint32_t, SpoolFile::Piece> pieces;
  std::mt19937 random{3};
  std::uint64_t end = 0;
  for (std::uint32_t i = 0; i < 2000; ++i) {
    if (pieces.size() > 20) {
      const auto victim = std::next(pieces.begin(), static_cast<std::ptrdiff_t>(random() % 20));
      file.take_out(victim->second);
      pieces.erase(victim);
    }
    const auto piece = file.put(bytes_for(i, 1 + random() % 20000));
    ASSERT_TRUE(piece);
    end = std::max(end, piece->offset + piece->bytes);
    pieces.emplace(i, *piece);
  }
  std::uint64_t held = 0;
  for (const auto& [number, piece] : pieces) {
    const auto bytes = file.get(piece);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, bytes_for(number, piece.bytes));
    held += SpoolFile::room_for(piece.bytes);
  }
  EXPECT_EQ(file.held(), held);
  EXPECT_LT(end, 21U * 20480U * 2) << "room is used again";
}

TEST(SpoolFile, TakesWhatFitsOfALimit) {
  const test::TemporaryFolder folder;
  SpoolFile file{folder.path()};
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_FSIZE, &before), 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit limit = before;
  limit.rlim_cur = 40960;
  ASSERT_EQ(::setrlimit(RLIMIT_FSIZE, &limit), 0);
  const auto first = file.put(bytes_for(1, 20000));
  const auto second = file.put(bytes_for(2, 20000));
  const auto third = file.put(bytes_for(3, 20000));
  if (first) file.take_out(*first);
  const auto fourth = file.put(bytes_for(4, 20000));
  ::setrlimit(RLIMIT_FSIZE, &before);
  std::signal(SIGXFSZ, handler);
  ASSERT_TRUE(first && second && fourth);
  EXPECT_FALSE(third);
  EXPECT_EQ(fourth->offset, first->offset);
  EXPECT_EQ(*file.get(*second), bytes_for(2, 20000));
  EXPECT_EQ(*file.get(*fourth), bytes_for(4, 20000));
}

}  // namespace
}  // namespace backtrail::server
