// SPDX-License-Identifier: Apache-2.0
#include "server/rsp/frame_parser.hpp"

#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "server/rsp/binary_escape.hpp"
#include "server/rsp/frame_writer.hpp"

namespace backtrail::server::rsp {
namespace {

struct Seen {
  FrameKind kind;
  std::string payload;
  bool operator==(const Seen&) const = default;
};

void PrintTo(const Seen& seen, std::ostream* out) {
  *out << static_cast<int>(seen.kind) << ":" << seen.payload;
}

std::vector<Seen> feed(FrameParser& parser, std::string_view bytes) {
  std::vector<Seen> seen;
  while (auto frame = parser.next(bytes)) seen.push_back({frame->kind, frame->payload});
  EXPECT_TRUE(bytes.empty());
  return seen;
}

std::vector<Seen> parse(std::string_view bytes, std::size_t max_payload = 1000) {
  FrameParser parser{max_payload};
  return feed(parser, bytes);
}

Seen packet(std::string payload) {
  return {FrameKind::kPacket, std::move(payload)};
}

TEST(FrameParser, FindsPacketsAcksAndInterrupts) {
  EXPECT_EQ(parse("+$vCont;c#a8\x03-"), (std::vector<Seen>{{FrameKind::kAck, ""},
                                                           packet("vCont;c"),
                                                           {FrameKind::kInterrupt, ""},
                                                           {FrameKind::kNack, ""}}));
}

TEST(FrameParser, TakesUpperCaseChecksums) {
  EXPECT_EQ(parse("$OK#9A"), std::vector<Seen>{packet("OK")});
}

TEST(FrameParser, AnEmptyPacketIsAPacket) {
  EXPECT_EQ(parse("$#00"), std::vector<Seen>{packet("")});
}

TEST(FrameParser, ReportsWrongChecksums) {
  EXPECT_EQ(parse("$OK#9b"), (std::vector<Seen>{{FrameKind::kBadChecksum, "OK"}}));
  EXPECT_EQ(parse("$OK#xx"), (std::vector<Seen>{{FrameKind::kBadChecksum, "OK"}}));
}

TEST(FrameParser, InterruptByteWithinAPacketIsData) {
  EXPECT_EQ(parse("$X\x03#5b"), std::vector<Seen>{packet("X\x03")});
}

TEST(FrameParser, IgnoresGarbageAndCountsIt) {
  FrameParser parser{1000};
  EXPECT_EQ(feed(parser, std::string_view{"GET / HTTP\r\n\0\xff$OK#9a", 20}),
            std::vector<Seen>{packet("OK")});
  EXPECT_EQ(parser.ignored_bytes(), 14U);
}

TEST(FrameParser, DropsNotifications) {
  EXPECT_EQ(parse("%Stop:T00#94$OK#9a"), std::vector<Seen>{packet("OK")});
}

TEST(FrameParser, ANewPacketEndsAnUnfinishedOne) {
  const std::vector<Seen> expected{packet("OK")};
  EXPECT_EQ(parse("$m1234$OK#9a"), expected);
  EXPECT_EQ(parse("$m1234#$OK#9a"), expected);
  EXPECT_EQ(parse("$m1234#a$OK#9a"), expected);
  EXPECT_EQ(parse("$m12*$OK#9a"), expected);
  EXPECT_EQ(parse("%Stop$OK#9a"), expected);
}

TEST(FrameParser, ExpandsRuns) {
  EXPECT_EQ(parse("$0* #7a"), std::vector<Seen>{packet("0000")});
  EXPECT_EQ(parse(frame_packet(std::string(900, 'f'))),
            std::vector<Seen>{packet(std::string(900, 'f'))});
}

TEST(FrameParser, AStarThatIsNoRunStandsForItself) {
  EXPECT_EQ(parse("$*a#8b"), std::vector<Seen>{packet("*a")});
  EXPECT_EQ(parse("$a*#8b"), std::vector<Seen>{packet("a*")});
  EXPECT_EQ(parse("$a*\x01#8c"), std::vector<Seen>{packet("a*\x01")});
}

TEST(FrameParser, KeepsBinaryEscapes) {
  EXPECT_EQ(parse("$}\x03#80"), std::vector<Seen>{packet("}\x03")});
}

TEST(FrameParser, TheLargestPacketIsAcceptedAndOneMoreIsNot) {
  EXPECT_EQ(parse("$12345#ff", 5), std::vector<Seen>{packet("12345")});
  EXPECT_EQ(parse("$123456#35$OK#9a", 5),
            (std::vector<Seen>{{FrameKind::kOversized, ""}, packet("OK")}));
}

TEST(FrameParser, RunsCannotExceedTheMaximum) {
  std::string bomb = "$a";
  for (int i = 0; i < 1000; ++i) bomb += "*~";
  bomb += "#00$OK#9a";
  EXPECT_EQ(parse(bomb, 5000), (std::vector<Seen>{{FrameKind::kOversized, ""}, packet("OK")}));
}

TEST(FrameParser, SplittingTheInputAnywhereChangesNothing) {
  const std::string bytes = "x+$m0,*4#00" + frame_packet("qSupported:aaaaaaaaaa") +
                            "%note#11\x03$}\x03#80-" + frame_packet("123456789012345678901234567");
  const std::vector<Seen> whole = parse(bytes, 24);
  ASSERT_EQ(whole.size(), 7U);
  for (std::size_t first = 0; first <= bytes.size(); ++first) {
    for (std::size_t second = first; second <= bytes.size(); ++second) {
      FrameParser parser{24};
      std::vector<Seen> parts = feed(parser, std::string_view{bytes}.substr(0, first));
      for (auto& seen : feed(parser, std::string_view{bytes}.substr(first, second - first))) {
        parts.push_back(std::move(seen));
      }
      for (auto& seen : feed(parser, std::string_view{bytes}.substr(second))) {
        parts.push_back(std::move(seen));
      }
      ASSERT_EQ(parts, whole) << first << " " << second;
    }
  }
}

TEST(FrameParser, ReadsBackWhateverTheWriterWrites) {
  std::mt19937 random{42};
  for (int round = 0; round < 500; ++round) {
    std::vector<std::uint8_t> bytes(random() % 700);
    // With few different values, runs are common.
    const unsigned values = round % 2 == 0 ? 256 : 2;
    for (auto& byte : bytes) byte = static_cast<std::uint8_t>('#' + random() % values);
    const std::vector<Seen> seen = parse(frame_packet(escape_binary(bytes)), 2000);
    ASSERT_EQ(seen.size(), 1U);
    ASSERT_EQ(seen[0].kind, FrameKind::kPacket);
    ASSERT_EQ(unescape_binary(seen[0].payload), bytes);
  }
}

TEST(FrameParser, RandomBytesNeverStopIt) {
  std::mt19937 random{1};
  FrameParser parser{100};
  constexpr std::string_view kAlphabet =
      "$#%*}+-\x03"
      "0a~ ";
  for (int round = 0; round < 2000; ++round) {
    std::string bytes;
    for (int i = 0; i < 50; ++i) {
      bytes +=
          random() % 4 == 0 ? static_cast<char>(random()) : kAlphabet[random() % kAlphabet.size()];
    }
    for (const Seen& seen : feed(parser, bytes)) ASSERT_LE(seen.payload.size(), 100U);
  }
  // After any bytes, the next packet is parsed correctly.
  const std::vector<Seen> seen = feed(parser, "$OK#9a");
  ASSERT_FALSE(seen.empty());
  EXPECT_EQ(seen.back(), packet("OK"));
}

}  // namespace
}  // namespace backtrail::server::rsp
