// SPDX-License-Identifier: Apache-2.0
// Clients that take their time to read: they get all answers before the end.

#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <thread>

#include <gtest/gtest.h>

#include "server/transport/connection.hpp"
#include "test/integration/server_io_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::server {
namespace {

/// A client that takes its time to read. The buffers of a Unix socket are small.
class SlowReader : public ServerIo {
 protected:
  /// Asks for 1 MB, which is not enough to make the server stop to read, and for what follows.
  RspClient ask(const LoopOptions& options, std::string_view then) {
    serve("unix:" + path_, options);
    RspClient client = RspClient::unix_socket(path_);
    client.send_packet("QStartNoAckMode");
    EXPECT_EQ(client.read(7), "+$OK#9a");
    client.send("+" + reply("big:1000000") + reply(then));
    EXPECT_EQ(client.read(1), "$") << "the server is at work";
    return client;
  }

 private:
  test::TemporaryFolder folder_;
  std::string path_ = folder_ / "socket";
};

TEST_F(SlowReader, GetsAllAnswersAfterItHasEndedItsInput) {
  RspClient client = ask({}, "last");
  client.end_input();
  std::this_thread::sleep_for(std::chrono::milliseconds{100});
  EXPECT_EQ(client.read(1'000'003).size(), 1'000'003U);
  EXPECT_EQ(client.read_to_end(), reply("got last"));
}

TEST_F(SlowReader, GetsAllAnswersBeforeTheEndThatItAsksFor) {
  RspClient client = ask({}, "exit");
  std::this_thread::sleep_for(Connection::kLinger * 3 / 2);
  EXPECT_EQ(client.read(1'000'003).size(), 1'000'003U);
  EXPECT_EQ(client.read_to_end(), reply("OK"));
  client.close();
  EXPECT_EQ(status(), 0);
}

TEST_F(SlowReader, CannotHoldUpASignal) {
  RspClient client = ask({.once = true}, "last");
  client.end_input();
  stop(SIGTERM);
  EXPECT_EQ(status(), 128 + SIGTERM);
}

TEST_F(SlowReader, EndsTheServerWhenItGoesAway) {
  RspClient client = ask({.once = true}, "last");
  client.end_input();
  client.close();
  EXPECT_EQ(status(), 0);
}

TEST_F(SlowReader, GetsAnswersThatWaitForItsAcknowledgementsWhenItEndsItsInput) {
  serve(":0");
  RspClient client = connect();
  client.send_packet("twice");
  client.end_input();
  EXPECT_EQ(client.read_to_end(), "+" + reply("one") + reply("two"));
}

// The acknowledgement would reset a closed connection, and discard what the client has no room for.
TEST_F(SlowReader, MayAcknowledgeAnAnswerLongAfterTheEnd) {
  serve(":0");
  RspClient client = connect(4096);
  client.send(reply("big:200000") + reply("exit"));
  EXPECT_EQ(client.read(3), "+$a");
  std::this_thread::sleep_for(Connection::kLinger * 3 / 2);
  client.send("+");
  std::this_thread::sleep_for(std::chrono::milliseconds{50});
  EXPECT_EQ(client.read_to_end().size(), 200'002U + ("+" + reply("OK")).size());
  client.close();
  EXPECT_EQ(status(), 0);
}

}  // namespace
}  // namespace backtrail::server
