// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <fstream>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::StartsWith;

class VFileTest : public SessionTest {
 protected:
  void SetUp() override {
    std::string name = (std::filesystem::temp_directory_path() / "bt-vfile-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder = name;
    path = folder / "file";
    std::ofstream{path} << "contents#";
  }
  void TearDown() override { std::filesystem::remove_all(folder); }

  std::string open(const std::string& flags = "0") {
    return ask("vFile:open:" + hex(path.string()) + "," + flags + ",1a4");
  }

  std::filesystem::path folder;
  std::filesystem::path path;
};

TEST_F(VFileTest, ReadsFiles) {
  EXPECT_EQ(ask("vFile:setfs:0"), "F0");
  EXPECT_EQ(open(), "F3");
  EXPECT_EQ(ask("vFile:pread:3,4,3"), "F4;tent");
  EXPECT_EQ(ask("vFile:pread:3,100,7"), "F2;s}\x03");
  EXPECT_EQ(ask("vFile:pread:3,100,100"), "F0;");
  EXPECT_EQ(ask("vFile:close:3"), "F0");
  EXPECT_EQ(ask("vFile:close:3"), "F-1,16");
}

TEST_F(VFileTest, ReadsAsMuchAtATimeAsIsCheapOverAPipe) {
  std::ofstream{path} << std::string(40'000, 'x');
  EXPECT_EQ(open(), "F3");
  EXPECT_EQ(ask("vFile:pread:3,1fff0,0"), "F4000;" + std::string(0x4000, 'x'));
  EXPECT_EQ(ask("vFile:pread:3,1fff0,8000"), "F1c40;" + std::string(0x1c40, 'x'));
}

TEST_F(VFileTest, WritesFiles) {
  EXPECT_EQ(open("1"), "F3");
  EXPECT_EQ(ask("vFile:pwrite:3,1,a}\x03"
                "b"),
            "F3");
  ask("vFile:close:3");
  EXPECT_EQ(open(), "F3");
  EXPECT_EQ(ask("vFile:pread:3,5,0"),
            "F5;ca}\x03"
            "be");
}

TEST_F(VFileTest, OpensAsAsked) {
  EXPECT_EQ(open("a01"), "F-1,11");  // CREAT and EXCL
  EXPECT_EQ(open("401"), "F3");      // TRUNC
  EXPECT_EQ(std::filesystem::file_size(path), 0U);
  EXPECT_EQ(open("3"), "F-1,16");
  EXPECT_EQ(open("4"), "F-1,16");
}

TEST_F(VFileTest, TellsAboutFiles) {
  ASSERT_EQ(open(), "F3");
  const std::string reply = ask("vFile:fstat:3");
  EXPECT_THAT(reply, StartsWith("F40;"));
  const auto bytes = rsp::from_hex("");
  // st_mode says regular file; st_size is 9, big-endian, at offset 28.
  std::string raw;
  for (std::size_t i = 4; i < reply.size(); ++i) {
    raw += reply[i] == '}' ? static_cast<char>(reply[++i] ^ 0x20) : reply[i];
  }
  ASSERT_EQ(raw.size(), 64U);
  EXPECT_EQ(static_cast<unsigned char>(raw[10]) & 0xf0, 0x80);
  EXPECT_EQ(raw.substr(28, 8), std::string("\0\0\0\0\0\0\0\x09", 8));
  EXPECT_EQ(ask("vFile:stat:" + hex(path.string())).substr(0, 4), "F40;");
}

TEST_F(VFileTest, ReadsAndRemovesLinks) {
  std::filesystem::create_symlink("to", folder / "link");
  EXPECT_EQ(ask("vFile:readlink:" + hex((folder / "link").string())), "F2;to");
  EXPECT_EQ(ask("vFile:unlink:" + hex((folder / "link").string())), "F0");
  EXPECT_EQ(ask("vFile:unlink:" + hex((folder / "link").string())), "F-1,2");
}

TEST_F(VFileTest, RefusesMalformedRequests) {
  for (const char* bad :
       {"vFile:open:",          "vFile:open:zz,0,0",   "vFile:open:2f,0",
        "vFile:open:2f00,0,0",  "vFile:open:,0,0",     "vFile:pread:99,10,0",
        "vFile:pread:3",        "vFile:pread:3,10",    "vFile:pread:3,10,ffffffffffffffff",
        "vFile:pwrite:3,0",     "vFile:pwrite:3,0,}",  "vFile:close:",
        "vFile:close:ffffffff", "vFile:close:-1",      "vFile:fstat:9",
        "vFile:stat:",          "vFile:unlink:",       "vFile:readlink:2",
        "vFile:setfs:",         "vFile:setfs:ffffffff"}) {
    EXPECT_EQ(ask(bad), "F-1,16") << bad;
  }
  EXPECT_EQ(ask("vFile:bogus:1"), "");
}

TEST_F(VFileTest, BoundsWhatIsReadAtOnce) {
  std::ofstream{path} << std::string(2 * Session::kPacketSize, '}');
  ASSERT_EQ(open(), "F3");
  EXPECT_LE(ask("vFile:pread:3,ffffffff,0").size(), Session::kPacketSize);
}

}  // namespace
}  // namespace backtrail::server
