// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

class MemoryTest : public SessionTest {
 protected:
  MemoryTest() { target.add_process(1); }

  std::vector<std::uint8_t>& bytes() { return target.all.at(1).memory.at(0x1000); }
};

TEST_F(MemoryTest, Reads) {
  EXPECT_EQ(ask("m1002,4"), "02030405");
  EXPECT_EQ(ask("m1000,0"), "");
}

TEST_F(MemoryTest, NeverReadsShort) {
  EXPECT_EQ(ask("m1ffe,2"), "feff");
  EXPECT_EQ(ask("m1ffe,3"), "E01");
  EXPECT_EQ(ask("mfff,2"), "E01");
  EXPECT_EQ(ask("m0,1"), "E01");
}

TEST_F(MemoryTest, BoundsHugeReads) {
  target.all.at(1).memory[0x100000] = std::vector<std::uint8_t>(4 * Session::kPacketSize);
  for (const char* packet : {"m100000,ffffffff", "m100000,80000", "m100000,20000"}) {
    const std::string reply = ask(packet);
    EXPECT_LE(reply.size(), Session::kPacketSize);
    EXPECT_GT(reply.size(), Session::kPacketSize - 8);
  }
  EXPECT_EQ(ask("m1000,ffffffffffffffff"), "E01");
}

TEST_F(MemoryTest, Writes) {
  EXPECT_EQ(ask("M1000,2:beef"), "OK");
  EXPECT_EQ(bytes()[0], 0xbe);
  EXPECT_EQ(ask("X1000,3:a}\x03z"), "OK");
  EXPECT_EQ(bytes()[0], 'a');
  EXPECT_EQ(bytes()[1], '#');
  EXPECT_EQ(bytes()[2], 'z');
  EXPECT_EQ(ask("X1000,0:"), "OK");
}

TEST_F(MemoryTest, RefusesWritesThatDoNotFit) {
  for (const char* bad : {"M1000,2:be", "M1000,2:beefff", "M1000,1:b", "M1000,1", "M1000:00",
                          "M0,1:00", "X1000,2:a", "X1000,1:}", "X1000,ffffffff:a", "X0,1:a"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(MemoryTest, OfARecordingSaysThatItCannotBeChangedToWhoShowsThat) {
  target.recorded = true;
  EXPECT_EQ(ask("M1000,1:00"), "E01");
  EXPECT_EQ(ask("X1000,1:a"), "E01");
  ask("qSupported:error-message+");
  EXPECT_EQ(ask("M1000,1:00"), "E.a recorded crash cannot be changed");
  EXPECT_EQ(ask("X1000,1:a"), "E.a recorded crash cannot be changed");
  EXPECT_EQ(ask("M1000,1"), "E01");
}

TEST_F(MemoryTest, RefusesMalformedRanges) {
  for (const char* bad : {"m", "m1000", "m1000,", "m,4", "m1000,4x", "m-1,4", "m1000,-4", "mzz",
                          "m10000000000000000,1", "x", "x1000", "x1000,1:"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(MemoryTest, ReadsBinary) {
  bytes()[0] = '#';
  bytes()[1] = 'a';
  EXPECT_EQ(ask("x1000,2"),
            "b}\x03"
            "a");
  EXPECT_EQ(ask("x1000,0"), "b");
  EXPECT_EQ(ask("x0,1"), "E01");
}

TEST_F(MemoryTest, BinaryReadsFitAfterEscaping) {
  target.all.at(1).memory[0x100000] = std::vector<std::uint8_t>(Session::kPacketSize, '#');
  EXPECT_LE(ask("x100000,1ffff").size(), Session::kPacketSize);
}

TEST_F(MemoryTest, ReadsTheSelectedProcess) {
  target.add_process(2);
  target.all.at(2).memory.at(0x1000)[0] = 0xaa;
  ask("qSupported:multiprocess+");
  EXPECT_EQ(ask("m1000,1"), "00");
  ask("Hgp2.2");
  EXPECT_EQ(ask("m1000,1"), "aa");
  // The Hg thread may be gone while its process lives.
  target.add_thread(2, 3);
  target.all.at(2).threads.erase(2);
  EXPECT_EQ(ask("m1000,1"), "aa");
}

TEST_F(MemoryTest, Searches) {
  EXPECT_EQ(ask(std::string_view{"qSearch:memory:1000;1000;\x05\x06\x07", 26}), "1,1005");
  EXPECT_EQ(ask("qSearch:memory:1000;1000;zebra"), "0");
  EXPECT_EQ(ask("qSearch:memory:1000;2;zebra"), "0");
  EXPECT_EQ(ask("qSearch:memory:1000;1001;zebra"), "E00");
  EXPECT_EQ(ask("qSearch:memory:0;10;a"), "E00");
}

TEST_F(MemoryTest, FindsMatchesAcrossChunks) {
  std::vector<std::uint8_t> large(200'000);
  const std::string_view needle = "needle";
  std::copy(needle.begin(), needle.end(), large.begin() + 65536 - 3);
  target.all.at(1).memory[0x100000] = large;
  EXPECT_EQ(ask("qSearch:memory:100000;30d40;needle"), "1,10fffd");
  // The last place where the pattern fits, and a range one byte shorter.
  std::copy(needle.begin(), needle.end(), target.all.at(1).memory[0x100000].end() - 6);
  EXPECT_EQ(ask("qSearch:memory:110000;20d40;needle"), "1,130d3a");
  EXPECT_EQ(ask("qSearch:memory:110000;20d3f;needle"), "0");
}

TEST_F(MemoryTest, RefusesMalformedSearches) {
  for (const char* bad : {"qSearch:memory:", "qSearch:memory:1000", "qSearch:memory:1000;10",
                          "qSearch:memory:1000;10;", "qSearch:memory:1000;10;}"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(MemoryTest, ComputesChecksums) {
  // CRC-32/MPEG-2 of "123456789", a published check value.
  const std::string_view text = "123456789";
  std::copy(text.begin(), text.end(), bytes().begin());
  EXPECT_EQ(ask("qCRC:1000,9"), "C376e6e7");
  EXPECT_EQ(ask("qCRC:1000,0"), "Cffffffff");
  EXPECT_EQ(ask("qCRC:0,4"), "E01");
  EXPECT_EQ(ask("qCRC:1000"), "E01");
}

}  // namespace
}  // namespace backtrail::server
