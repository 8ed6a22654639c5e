// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/frame_writer.hpp"

#include <gtest/gtest.h>

#include "server/rsp/frame_parser.hpp"

namespace backtrail::server::rsp {
namespace {

TEST(FrameWriter, FramesWithChecksum) {
  EXPECT_EQ(frame_packet(""), "$#00");
  EXPECT_EQ(frame_packet("OK"), "$OK#9a");
  EXPECT_EQ(frame_notification("Stop:T00"), "%Stop:T00#94");
}

TEST(FrameWriter, ChecksumCoversTheCodedForm) {
  EXPECT_EQ(frame_packet("0000"), "$0* #7a");
}

TEST(FrameWriter, ShortRunsStay) {
  EXPECT_EQ(encode_runs("aaa"), "aaa");
  EXPECT_EQ(encode_runs("aaaa"), "a* ");
}

TEST(FrameWriter, LongRunsAreCut) {
  // A run has at most 97 repeats ('~'), which is 98 characters; 6 remain.
  EXPECT_EQ(encode_runs(std::string(300, 'x')), "x*~x*~x*~x*\"");
}

TEST(FrameWriter, CountsThatLookLikeFramingAreAvoided) {
  for (std::size_t length = 1; length < 400; ++length) {
    const std::string coded = encode_runs(std::string(length, 'q'));
    EXPECT_EQ(coded.find_first_of("$#+-"), std::string::npos) << length;
    for (const char c : coded) EXPECT_TRUE(c >= ' ' && c <= '~') << length;
  }
}

TEST(FrameWriter, RunsOfEveryLengthComeBack) {
  FrameParser parser{1000};
  for (std::size_t length = 0; length < 400; ++length) {
    const std::string text = "ab" + std::string(length, '0') + "cc1";
    const std::string sent = frame_packet(text);
    std::string_view input = sent;
    const auto frame = parser.next(input);
    ASSERT_TRUE(frame) << length;
    EXPECT_EQ(frame->kind, FrameKind::kPacket) << length;
    EXPECT_EQ(frame->payload, text);
  }
}

TEST(FrameWriter, RunsNeverGrowThePayload) {
  for (std::size_t length = 0; length < 400; ++length) {
    EXPECT_LE(encode_runs(std::string(length, '0')).size(), length);
  }
}

}  // namespace
}  // namespace backtrail::server::rsp
