// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/binary_escape.hpp"

#include <random>

#include <gtest/gtest.h>

namespace backtrail::server::rsp {
namespace {

TEST(BinaryEscape, EscapesWhatFramingNeeds) {
  EXPECT_EQ(escape_binary(std::string_view{"a$#}*b"}), "a}\x04}\x03}]}\nb");
}

TEST(BinaryEscape, EveryByteSurvives) {
  std::vector<std::uint8_t> all(256);
  std::iota(all.begin(), all.end(), std::uint8_t{0});
  const std::string escaped = escape_binary(all);
  EXPECT_EQ(escaped.find_first_of("$#*"), std::string::npos);
  EXPECT_EQ(unescape_binary(escaped), all);
}

TEST(BinaryEscape, AcceptsNeedlessEscapes) {
  EXPECT_EQ(unescape_binary("}A"), std::vector<std::uint8_t>{'a'});
}

TEST(BinaryEscape, RefusesHalfAnEscape) {
  EXPECT_EQ(unescape_binary("ab}"), std::nullopt);
}

TEST(BinaryEscape, NeverExceedsTheRoomNorSplitsAnEscape) {
  std::mt19937 random{7};
  std::vector<std::uint8_t> bytes(300);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>("$#}*ab"[random() % 6]);
  for (std::size_t room = 0; room < 40; ++room) {
    std::string out;
    const std::size_t taken = append_escaped(bytes, room, out);
    EXPECT_LE(out.size(), room);
    EXPECT_GE(out.size() + 1, room) << "more would have fitted";
    EXPECT_EQ(unescape_binary(out),
              (std::vector<std::uint8_t>{bytes.begin(),
                                         bytes.begin() + static_cast<std::ptrdiff_t>(taken)}));
  }
}

}  // namespace
}  // namespace backtrail::server::rsp
