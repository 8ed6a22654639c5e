// SPDX-License-Identifier: Apache-2.0
#include "server/transport/connection.hpp"

#include <array>
#include <memory>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

namespace backtrail::server {
namespace {

class ConnectionTest : public testing::Test, public ConnectionListener {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{-1, -1};
    ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
    client_ = tracee::UniqueFd{ends[0]};
    connection_ = std::make_unique<Connection>(
        io_, ClientChannel{.input = tracee::UniqueFd{ends[1]}, .output = {}, .is_socket = true},
        *this);
    connection_->start();
  }
  std::string receive() {
    std::array<char, 64> bytes{};
    const ssize_t got = ::read(client_.get(), bytes.data(), bytes.size());
    return {bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  /// Does all that needs no wait.
  void do_what_is_due() {
    io_.restart();
    io_.poll();
  }

  boost::asio::io_context io_;
  tracee::UniqueFd client_;
  std::unique_ptr<Connection> connection_;
  bool closed_ = false;

 private:
  void on_packet(std::string_view /*payload*/) override {}
  void on_interrupt() override {}
  void on_closed() override { closed_ = true; }
};

TEST_F(ConnectionTest, EndsWhenTheClientHasTheLastAnswer) {
  connection_->stop_acknowledging();
  connection_->send_packet("OK");
  EXPECT_EQ(receive(), "$OK#9a");
  connection_->finish();
  do_what_is_due();
  EXPECT_TRUE(closed_);
  EXPECT_EQ(receive(), "");
}

TEST_F(ConnectionTest, WaitsForAClientThatHasNotRead) {
  connection_->stop_acknowledging();
  connection_->send_packet("OK");
  connection_->finish();
  do_what_is_due();
  EXPECT_FALSE(closed_);
  EXPECT_EQ(receive(), "$OK#9a");
  io_.restart();
  while (!closed_ && io_.run_one() != 0) {
  }
  EXPECT_TRUE(closed_);
}

// An acknowledgement that comes after the end would reset the connection.
TEST_F(ConnectionTest, WaitsForAClientThatAcknowledges) {
  connection_->send_packet("OK");
  EXPECT_EQ(receive(), "$OK#9a");
  connection_->finish();
  do_what_is_due();
  EXPECT_FALSE(closed_);
}

}  // namespace
}  // namespace backtrail::server
