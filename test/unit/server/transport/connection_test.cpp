// SPDX-License-Identifier: Apache-2.0
#include "server/transport/connection.hpp"

#include <array>
#include <chrono>
#include <csignal>
#include <memory>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/rsp/frame_writer.hpp"

namespace backtrail::server {
namespace {

class ConnectionTest : public testing::Test, public ConnectionListener {
 protected:
  ConnectionTest() { std::signal(SIGPIPE, SIG_IGN); }  // as StopSignals does for the server
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
    std::array<char, 16384> bytes{};
    const ssize_t got = ::read(client_.get(), bytes.data(), bytes.size());
    return {bytes.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }
  /// Queues more than the kernel takes, without acknowledgements. @return What the client must get.
  std::string send_much() {
    connection_->stop_acknowledging();
    std::string all;
    while (!connection_->interest().output || all.size() < Connection::kPauseBytes / 2) {
      std::string payload;
      while (payload.size() < 4096) payload += std::to_string(all.size() + payload.size());
      connection_->send_packet(payload);
      all += rsp::frame_packet(payload);
    }
    return all;
  }
  void end_input() {
    ::shutdown(client_.get(), SHUT_WR);
    connection_->start_reading();
    do_what_is_due();
  }
  /// Reads until the connection has closed.
  std::string receive_all() {
    std::string all;
    for (std::string part = receive(); !part.empty(); part = receive()) {
      all += part;
      do_what_is_due();
    }
    return all;
  }
  /// Waits until the connection has closed.
  void wait_for_end() {
    io_.restart();
    while (!closed_ && io_.run_one() != 0) {
    }
    EXPECT_TRUE(closed_);
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
  wait_for_end();
}

// An acknowledgement that comes after the end would reset the connection.
TEST_F(ConnectionTest, WaitsForAClientThatAcknowledges) {
  connection_->send_packet("OK");
  EXPECT_EQ(receive(), "$OK#9a");
  connection_->finish();
  do_what_is_due();
  EXPECT_FALSE(closed_);
}

TEST_F(ConnectionTest, GivesAllAnswersToAClientThatEndedItsInput) {
  const std::string all = send_much();
  end_input();
  EXPECT_FALSE(closed_);
  EXPECT_EQ(receive_all(), all);
  EXPECT_TRUE(closed_);
}

// Nobody sends the acknowledgement that the second answer waits for.
TEST_F(ConnectionTest, HoldsNoAnswerBackOnceTheInputHasEnded) {
  connection_->send_packet("one");
  connection_->send_packet("two");
  end_input();
  EXPECT_EQ(receive_all(), rsp::frame_packet("one") + rsp::frame_packet("two"));
  EXPECT_TRUE(closed_);
}

TEST_F(ConnectionTest, SendsWhatComesWhileAClientThatEndedItsInputIsSlow) {
  std::string all = send_much();
  end_input();
  connection_->send_packet("W00");
  all += rsp::frame_packet("W00");
  EXPECT_EQ(receive_all(), all);
}

TEST_F(ConnectionTest, EndsWithAReaderThatGoesAwayAfterItsInput) {
  send_much();
  end_input();
  EXPECT_FALSE(closed_);
  client_.reset();
  wait_for_end();
}

TEST_F(ConnectionTest, HasLimitedPatienceWithAClientThatReadsNothing) {
  connection_->set_patience(std::chrono::milliseconds{10});
  send_much();
  end_input();
  EXPECT_FALSE(closed_);
  wait_for_end();
}

TEST_F(ConnectionTest, SendsAllBeforeItFinishes) {
  const std::string all = send_much();
  connection_->finish();
  do_what_is_due();
  EXPECT_EQ(receive_all(), all);
  wait_for_end();
}

TEST_F(ConnectionTest, SendsAllBeforeItFinishesToAClientThatEndedItsInput) {
  const std::string all = send_much();
  connection_->finish();
  end_input();
  EXPECT_EQ(receive_all(), all);
  wait_for_end();
}

TEST_F(ConnectionTest, HasLimitedPatienceWhenItFinishes) {
  connection_->set_patience(std::chrono::milliseconds{10});
  send_much();
  connection_->finish();
  EXPECT_FALSE(closed_);
  wait_for_end();
}

/// A client on standard input and output.
class PipedConnection : public ConnectionTest {
 protected:
  void SetUp() override {
    std::array<int, 2> input{-1, -1};
    std::array<int, 2> output{-1, -1};
    ASSERT_EQ(::pipe2(input.data(), O_CLOEXEC), 0);
    ASSERT_EQ(::pipe2(output.data(), O_CLOEXEC), 0);
    commands_ = tracee::UniqueFd{input[1]};
    client_ = tracee::UniqueFd{output[0]};
    connection_ = std::make_unique<Connection>(
        io_,
        ClientChannel{.input = tracee::UniqueFd{input[0]}, .output = tracee::UniqueFd{output[1]}},
        *this);
    connection_->start();
  }
  void end_commands() {
    commands_.reset();
    connection_->start_reading();
    do_what_is_due();
  }

  tracee::UniqueFd commands_;
};

TEST_F(PipedConnection, GivesAllAnswersWhenThePipeOfCommandsHasEnded) {
  const std::string all = send_much();
  end_commands();
  EXPECT_FALSE(closed_);
  EXPECT_EQ(receive_all(), all);
  EXPECT_TRUE(closed_);
}

TEST_F(PipedConnection, EndsWithAReaderThatGoesAway) {
  send_much();
  end_commands();
  EXPECT_FALSE(closed_);
  client_.reset();
  wait_for_end();
}

}  // namespace
}  // namespace backtrail::server
