// SPDX-License-Identifier: Apache-2.0
#include "server/transport/comm_spec.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::server {
namespace {

using testing::HasSubstr;

CommSpec tcp(std::string host, std::uint16_t port) {
  return {CommKind::kTcp, std::move(host), port, {}};
}

std::string failure(std::string_view text) {
  const auto spec = parse_comm(text);
  return spec ? "accepted" : spec.error();
}

TEST(CommSpec, HostAndPort) {
  EXPECT_EQ(parse_comm("example.org:2345"), tcp("example.org", 2345));
  EXPECT_EQ(parse_comm("0.0.0.0:1"), tcp("0.0.0.0", 1));
  EXPECT_EQ(parse_comm("localhost:65535"), tcp("localhost", 65535));
}

TEST(CommSpec, AnEmptyHostIsLoopback) {
  EXPECT_EQ(parse_comm(":0"), tcp("127.0.0.1", 0));
  EXPECT_EQ(parse_comm(":2345"), tcp("127.0.0.1", 2345));
}

TEST(CommSpec, Ipv6IsBracketed) {
  EXPECT_EQ(parse_comm("[::1]:2345"), tcp("::1", 2345));
  EXPECT_EQ(parse_comm("::1:2345"), tcp("::1", 2345));
  EXPECT_EQ(parse_comm("[fe80::1%eth0]:0"), tcp("fe80::1%eth0", 0));
}

TEST(CommSpec, StdioUnixAndDevices) {
  EXPECT_EQ(parse_comm("-"), (CommSpec{CommKind::kStdio, {}, 0, {}}));
  EXPECT_EQ(parse_comm("stdio"), (CommSpec{CommKind::kStdio, {}, 0, {}}));
  EXPECT_EQ(parse_comm("unix:/tmp/a:b"), (CommSpec{CommKind::kUnix, {}, 0, "/tmp/a:b"}));
  EXPECT_EQ(parse_comm("/dev/ttyS0"), (CommSpec{CommKind::kDevice, {}, 0, "/dev/ttyS0"}));
  EXPECT_EQ(parse_comm("/dev/serial/by-path/pci:0"),
            (CommSpec{CommKind::kDevice, {}, 0, "/dev/serial/by-path/pci:0"}));
}

TEST(CommSpec, MissingOrWrongPortsAreExplained) {
  EXPECT_THAT(failure("host:"), HasSubstr("no port"));
  EXPECT_THAT(failure(":"), HasSubstr("no port"));
  EXPECT_THAT(failure(":12a"), HasSubstr("not a port number"));
  EXPECT_THAT(failure(":-1"), HasSubstr("not a port number"));
  EXPECT_THAT(failure(": 1"), HasSubstr("not a port number"));
  EXPECT_THAT(failure(":65536"), HasSubstr("65535"));
  EXPECT_THAT(failure(":99999999999999999999999999"), HasSubstr("65535"));
}

TEST(CommSpec, ABareNumberIsNeitherPortNorDevice) {
  EXPECT_THAT(failure("2345"), HasSubstr("write :2345"));
}

TEST(CommSpec, UnbracketedIpv6IsExplained) {
  EXPECT_THAT(failure("::g:2345"), HasSubstr("[::1]:1234"));
  EXPECT_THAT(failure("tcp:host:1"), HasSubstr("more than one colon"));
  EXPECT_THAT(failure("[::1"), HasSubstr("]"));
  EXPECT_THAT(failure("[::1]"), HasSubstr("[ADDRESS]:PORT"));
  EXPECT_THAT(failure("[]:1"), HasSubstr("[ADDRESS]:PORT"));
  EXPECT_THAT(failure("[::1]2345"), HasSubstr("[ADDRESS]:PORT"));
}

TEST(CommSpec, UnixPathsAreBounded) {
  EXPECT_TRUE(parse_comm("unix:/" + std::string(106, 'a')));
  EXPECT_THAT(failure("unix:/" + std::string(107, 'a')), HasSubstr("at most 107"));
  EXPECT_THAT(failure("unix:"), HasSubstr("no path"));
}

TEST(CommSpec, NothingIsExplained) {
  EXPECT_THAT(failure(""), HasSubstr("no place"));
  EXPECT_THAT(failure(std::string_view{"a\0b", 3}), HasSubstr("zero byte"));
}

}  // namespace
}  // namespace backtrail::server
