// SPDX-License-Identifier: Apache-2.0
#include "server/transport/delivery.hpp"

#include <array>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "ptrace/os/unique_fd.hpp"

namespace backtrail::server {
namespace {

using tracee::UniqueFd;

struct Pair {
  UniqueFd here;
  UniqueFd there;
};

Pair unix_pair() {
  std::array<int, 2> ends{-1, -1};
  EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  return {UniqueFd{ends[0]}, UniqueFd{ends[1]}};
}

Pair tcp_pair() {
  const UniqueFd listener{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* any = reinterpret_cast<sockaddr*>(&address);
  EXPECT_EQ(::bind(listener.get(), any, size), 0);
  EXPECT_EQ(::listen(listener.get(), 1), 0);
  EXPECT_EQ(::getsockname(listener.get(), any, &size), 0);
  UniqueFd there{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  EXPECT_EQ(::connect(there.get(), any, size), 0);
  return {UniqueFd{::accept4(listener.get(), nullptr, nullptr, SOCK_CLOEXEC)}, std::move(there)};
}

void send_byte(const UniqueFd& socket) {
  ASSERT_EQ(::write(socket.get(), "x", 1), 1);
}

void receive_byte(const UniqueFd& socket) {
  char byte = 0;
  ASSERT_EQ(::read(socket.get(), &byte, 1), 1);
}

TEST(Delivery, IsSeenByAUnixSocketWhenThePeerHasRead) {
  const Pair pair = unix_pair();
  EXPECT_TRUE(is_delivered(pair.here.get()));
  send_byte(pair.here);
  EXPECT_FALSE(is_delivered(pair.here.get()));
  receive_byte(pair.there);
  EXPECT_TRUE(is_delivered(pair.here.get()));
}

TEST(Delivery, IsIncompleteWhileInputIsUnread) {
  for (const Pair& pair : {unix_pair(), tcp_pair()}) {
    send_byte(pair.there);
    EXPECT_FALSE(is_delivered(pair.here.get()));
    receive_byte(pair.here);
    EXPECT_TRUE(is_delivered(pair.here.get()));
  }
}

// An answer of the peer acknowledges all that it has read before, and the end.
TEST(Delivery, OfTcpEndsWithTheAcknowledgement) {
  const Pair pair = tcp_pair();
  send_byte(pair.here);
  ASSERT_EQ(::shutdown(pair.here.get(), SHUT_WR), 0);
  std::array<char, 2> bytes{};
  ASSERT_EQ(::recv(pair.there.get(), bytes.data(), bytes.size(), MSG_WAITALL), 1);
  send_byte(pair.there);
  receive_byte(pair.here);
  EXPECT_TRUE(is_delivered(pair.here.get()));
}

TEST(Delivery, OfTcpIsOnItsWayWhileThePeerHasNoRoom) {
  const Pair pair = tcp_pair();
  ASSERT_EQ(::fcntl(pair.here.get(), F_SETFL, O_NONBLOCK), 0);
  std::array<char, 65536> bytes{};
  while (::write(pair.here.get(), bytes.data(), bytes.size()) > 0) {
  }
  EXPECT_GT(bytes_on_their_way(pair.here.get()), 0);
}

TEST(Delivery, OfUnixSocketsIsNeverOnItsWay) {
  const Pair pair = unix_pair();
  send_byte(pair.here);
  EXPECT_EQ(bytes_on_their_way(pair.here.get()), 0);
}

TEST(Delivery, OfWhatIsNoSocketIsUnknown) {
  const UniqueFd file{::open("/dev/null", O_RDWR | O_CLOEXEC)};
  EXPECT_FALSE(is_delivered(file.get()));
  EXPECT_EQ(bytes_on_their_way(file.get()), 0);
}

}  // namespace
}  // namespace backtrail::server
