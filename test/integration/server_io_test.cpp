// SPDX-License-Identifier: Apache-2.0
// The server loop over real sockets, with a fake target and a fake session.

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pty.h>
#include <sys/resource.h>
#include <unistd.h>

#include "test/integration/server_io_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::server {
namespace {

using testing::HasSubstr;

TEST_F(ServerIo, AnswersAndAcknowledges) {
  serve(":0");
  RspClient client = connect();
  client.send_packet("hello");
  EXPECT_EQ(client.read(1 + reply("got hello").size()), "+" + reply("got hello"));
}

TEST_F(ServerIo, NackBringsTheLastPacketAgain) {
  serve(":0");
  RspClient client = connect();
  client.send_packet("hello");
  const std::string answer = reply("got hello");
  EXPECT_EQ(client.read(1 + answer.size()), "+" + answer);
  client.send("-");
  EXPECT_EQ(client.read(answer.size()), answer);
  client.send("+");
  client.send_packet("again");
  EXPECT_EQ(client.read(1 + reply("got again").size()), "+" + reply("got again"));
}

TEST_F(ServerIo, AFirstPacketThatWasSentAgainHasOneAnswer) {
  serve(":0");
  RspClient client = connect();
  const std::string hello = rsp::frame_packet("hello");
  client.send("+" + hello + hello + hello);
  const std::string answer = "+" + reply("got hello");
  EXPECT_EQ(client.read(answer.size()), answer);
  client.send(hello);        // sent before the client saw the answer
  client.send("+" + hello);  // now it is a new request
  EXPECT_EQ(client.read(answer.size()), answer);
  // Later packets are answered even if repeated.
  client.send("+" + rsp::frame_packet("QStartNoAckMode"));
  EXPECT_EQ(client.read(7), "+$OK#9a");
  client.send("+" + hello + hello);
  EXPECT_EQ(client.read(2 * reply("got hello").size()), reply("got hello") + reply("got hello"));
}

TEST_F(ServerIo, TheSecondAnswerWaitsForTheAcknowledgement) {
  serve(":0");
  RspClient client = connect();
  client.send_packet("twice");
  EXPECT_EQ(client.read(1 + reply("one").size()), "+" + reply("one"));
  client.send("-");
  EXPECT_EQ(client.read(reply("one").size()), reply("one")) << "not the second one";
  client.send("+");
  EXPECT_EQ(client.read(reply("two").size()), reply("two"));
}

TEST_F(ServerIo, WrongChecksumIsAskedForAgain) {
  serve(":0");
  RspClient client = connect();
  client.send("$hello#00");
  EXPECT_EQ(client.read(1), "-");
  client.send_packet("hello");
  EXPECT_EQ(client.read(1 + reply("got hello").size()), "+" + reply("got hello"));
}

TEST_F(ServerIo, WithoutAcknowledgementsThereAreNone) {
  serve(":0");
  RspClient client = connect_without_acks();
  client.send_packet("a");
  client.send("+-+");
  client.send("$b#00");
  const std::string expected = reply("got a") + reply("got b");
  EXPECT_EQ(client.read(expected.size()), expected);
}

TEST_F(ServerIo, GarbageIsIgnored) {
  serve(":0");
  RspClient client = connect_without_acks();
  std::string garbage = "GET / HTTP/1.1\r\n\r\n";
  for (int i = 0; i < 256; ++i) {
    const char c = static_cast<char>(i);
    if (c != '$' && c != '%' && c != '\x03') garbage += c;
  }
  client.send(garbage);
  client.send_packet("still here");
  EXPECT_EQ(client.read(reply("got still here").size()), reply("got still here"));
}

TEST_F(ServerIo, AHugePacketIsSkippedInBoundedMemory) {
  serve(":0");
  RspClient client = connect_without_acks();
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  ASSERT_TRUE(client.send("$"));
  const std::string piece(std::size_t{1} << 20, 'x');
  for (int i = 0; i < 100; ++i) ASSERT_TRUE(client.send(piece));
  ASSERT_TRUE(client.send("#00"));
  EXPECT_EQ(client.read(reply("E01").size()), reply("E01"));
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  EXPECT_LT(after.ru_maxrss - before.ru_maxrss, 20 * 1024) << "KiB for 100 MiB";
  client.send_packet("on");
  EXPECT_EQ(client.read(reply("got on").size()), reply("got on"));
}

TEST_F(ServerIo, AnInterruptGluedToAPacketStopsWork) {
  serve(":0");
  RspClient client = connect_without_acks();
  client.send(reply("work") + "\x03");
  EXPECT_EQ(client.read(reply("T02").size()), reply("T02"));
}

TEST_F(ServerIo, InputInterruptsLongWork) {
  serve(":0");
  RspClient client = connect_without_acks();
  client.send_packet("work");
  client.send_packet("question");
  EXPECT_EQ(client.read(reply("got question").size()), reply("got question"));
  client.send("\x03");
  EXPECT_EQ(client.read(reply("T02").size()), reply("T02"));
}

TEST_F(ServerIo, LargeAnswersArriveWhileTheTargetWorks) {
  serve(":0");
  RspClient client = connect_without_acks();
  client.send_packet("work");
  client.send_packet("big:4000000");
  EXPECT_EQ(client.read(4'000'004).size(), 4'000'004U);
  client.send("\x03");
  EXPECT_EQ(client.read(reply("T02").size()), reply("T02"));
}

TEST_F(ServerIo, AClientThatDoesNotReadIsNotReadFrom) {
  serve(":0");
  RspClient client = connect_without_acks();
  // The answers exceed the server's limit; it takes the requests one by one.
  std::string questions;
  for (int i = 0; i < 80; ++i) questions += reply("big:1000000");
  client.send(questions);
  std::size_t got = 0;
  for (int i = 0; i < 80; ++i) got += client.read(1'000'004).size();
  EXPECT_EQ(got, 80U * 1'000'004U);
  client.send_packet("on");
  EXPECT_EQ(client.read(reply("got on").size()), reply("got on"));
}

TEST_F(ServerIo, TargetEventsAreReportedWithoutInput) {
  target.on_event = [this] { target.events.push_back({}); };
  serve(":0");
  RspClient client = connect_without_acks();
  target.signal_event();
  EXPECT_EQ(client.read(reply("event").size()), reply("event"));
}

TEST_F(ServerIo, PacketsAreAnsweredWithoutThePumpOfATargetThatRests) {
  target.on_event = [this] { target.events.push_back({}); };
  serve(":0");
  RspClient client = connect_without_acks();
  const auto ask = [&] {
    client.send_packet("a");
    EXPECT_EQ(client.read(reply("got a").size()), reply("got a"));
  };
  ask();
  const int pumps = target.pumps;
  for (int i = 0; i < 10; ++i) ask();
  EXPECT_EQ(target.pumps, pumps);
  target.signal_event();
  EXPECT_EQ(client.read(reply("event").size()), reply("event"));
  ask();
}

TEST_F(ServerIo, EventsWithoutAClientWaitForTheNext) {
  target.on_event = [this] { target.events.push_back({}); };
  serve(":0");
  target.signal_event();
  RspClient client = connect();
  EXPECT_EQ(client.read(reply("event").size()), reply("event"));
}

TEST_F(ServerIo, AClientThatVanishesWithinAPacketLeavesTheServerListening) {
  serve(":0");
  for (const bool reset : {false, true}) {
    RspClient client = connect();
    client.send("$qSuppor");
    if (reset) {
      client.reset();
    } else {
      client.close();
    }
    RspClient next = connect();
    next.send_packet("hello");
    EXPECT_EQ(next.read(1 + reply("got hello").size()), "+" + reply("got hello"));
  }
  EXPECT_TRUE(target.killed.empty()) << "processes are kept";
}

TEST_F(ServerIo, ASecondClientWaits) {
  serve(":0");
  RspClient first = connect_without_acks();
  RspClient second = connect();
  ASSERT_TRUE(second.connected());
  second.send_packet("second");
  first.send_packet("first");
  EXPECT_EQ(first.read(reply("got first").size()), reply("got first"));
  first.close();
  EXPECT_EQ(second.read(1 + reply("got second").size()), "+" + reply("got second"));
}

TEST_F(ServerIo, TheAnswerArrivesBeforeTheEnd) {
  serve(":0");
  RspClient client = connect_without_acks();
  client.send_packet("exit");
  client.send_packet("never answered");
  EXPECT_EQ(client.read_to_end(), reply("OK"));
  client.close();
  EXPECT_EQ(status(), 0);
  EXPECT_EQ(target.killed, std::vector<pid_t>{100});
}

TEST_F(ServerIo, DisconnectListensAgain) {
  serve(":0");
  RspClient client = connect_without_acks();
  client.send_packet("disconnect");
  EXPECT_EQ(client.read_to_end(), reply("OK"));
  client.close();
  EXPECT_EQ(connect_without_acks().connected(), true);
}

TEST_F(ServerIo, AClientThatStaysOpenCannotHoldUpTheEnd) {
  serve(":0");
  RspClient client = connect_without_acks();
  client.send_packet("exit");
  EXPECT_EQ(status(), 0);
}

TEST_F(ServerIo, OnceEndsWithItsClient) {
  target.all.at(100).attached = true;
  serve(":0", {.once = true});
  RspClient client = connect_without_acks();
  EXPECT_FALSE(connect().connected()) << "it listens no more";
  client.close();
  EXPECT_EQ(status(), 0);
  EXPECT_EQ(target.detached, std::vector<pid_t>{100});
  EXPECT_TRUE(target.killed.empty());
}

TEST_F(ServerIo, TheLastProcessAndTheClientGoneEndAServer) {
  target.all.clear();
  serve(":0");
  connect().close();
  EXPECT_EQ(status(), 0);
}

TEST_F(ServerIo, AnExtendedServerStays) {
  target.all.clear();
  state.extended = true;
  serve(":0");
  connect().close();
  EXPECT_TRUE(connect_without_acks().connected());
}

TEST_F(ServerIo, SignalsEndItCleanly) {
  target.add_process(200);
  target.all.at(200).attached = true;
  serve(":0");
  RspClient client = connect_without_acks();
  client.send_packet("work");
  stop(SIGTERM);
  EXPECT_EQ(status(), 128 + SIGTERM);
  EXPECT_EQ(target.killed, std::vector<pid_t>{100});
  EXPECT_EQ(target.detached, std::vector<pid_t>{200});
}

TEST_F(ServerIo, ListensOnTheAddressThatIsSaid) {
  serve("127.0.0.1:0");
  EXPECT_TRUE(connect().connected());
}

TEST_F(ServerIo, KnowsLocalhostWithoutAHostsFile) {
  serve("localhost:0");
  EXPECT_TRUE(connect().connected());
}

std::string open_failure(PumpTarget& target, ServerState& state, const std::string& comm) {
  const auto loop = ServerLoop::open(parse_comm(comm).value(), target, state, {}, {});
  return loop ? "opened" : loop.error();
}

TEST_F(ServerIo, APortInUseIsSaidWithItsOwner) {
  auto first = ServerLoop::open(parse_comm(":0").value(), target, state, {}, {});
  ASSERT_TRUE(first);
  const std::string text = open_failure(target, state, ":" + std::to_string((*first)->port()));
  EXPECT_THAT(text, HasSubstr("address already in use by process " + std::to_string(::getpid())));
}

TEST_F(ServerIo, UnknownHostsAndAddressesAreExplained) {
  EXPECT_THAT(open_failure(target, state, "nowhere.invalid:0"), HasSubstr("is not known"));
  EXPECT_THAT(open_failure(target, state, "192.0.2.1:0"), HasSubstr("no such address"));
}

TEST_F(ServerIo, DevicesThatAreNoneAreExplained) {
  EXPECT_THAT(open_failure(target, state, "/nonexistent/tty"), HasSubstr("No such file"));
  EXPECT_THAT(open_failure(target, state, "/etc/passwd"), HasSubstr("not a character device"));
}

TEST_F(ServerIo, UnixSocketsArePrivateAndRemoved) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "socket";
  serve("unix:" + path);
  using std::filesystem::perms;
  EXPECT_EQ(std::filesystem::status(path).permissions() & (perms::group_all | perms::others_all),
            perms::none);
  RspClient client = RspClient::unix_socket(path);
  client.send_packet("hello");
  EXPECT_EQ(client.read(1 + reply("got hello").size()), "+" + reply("got hello"));
  stop(SIGINT);
  EXPECT_EQ(status(), 128 + SIGINT);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST_F(ServerIo, OnlyAStaleSocketIsReplaced) {
  const test::TemporaryFolder folder;
  const std::string path = folder / "socket";
  { std::ofstream{path} << "precious"; }
  EXPECT_THAT(open_failure(target, state, "unix:" + path), HasSubstr("is not a socket"));
  std::filesystem::remove(path);

  auto first = ServerLoop::open(parse_comm("unix:" + path).value(), target, state, {}, {});
  ASSERT_TRUE(first);
  EXPECT_THAT(open_failure(target, state, "unix:" + path), HasSubstr("listens there"));
  // A killed server leaves its socket file.
  std::filesystem::rename(path, path + ".kept");
  first->reset();
  std::filesystem::rename(path + ".kept", path);
  EXPECT_EQ(open_failure(target, state, "unix:" + path), "opened");
}

TEST_F(ServerIo, ServesOverATerminalLine) {
  int master = -1;
  int slave = -1;
  char name[128];
  ASSERT_EQ(::openpty(&master, &slave, name, nullptr, nullptr), 0);
  const tracee::UniqueFd owner{slave};
  tracee::UniqueFd line{master};
  serve(name);
  const std::string question = rsp::frame_packet("hello\x04");
  ASSERT_EQ(::write(line.get(), question.data(), question.size()),
            static_cast<ssize_t>(question.size()));
  const std::string expected = "+" + reply("got hello\x04");
  std::string got;
  while (got.size() < expected.size()) {
    pollfd input{line.get(), POLLIN, 0};
    ASSERT_EQ(::poll(&input, 1, 20'000), 1);
    char buffer[256];
    const ssize_t count = ::read(line.get(), buffer, sizeof buffer);
    ASSERT_GT(count, 0);
    got.append(buffer, static_cast<std::size_t>(count));
  }
  EXPECT_EQ(got, expected) << "the line neither echoes nor edits";
  line.reset();
  EXPECT_EQ(status(), 0) << "a hang-up is the end";
}

}  // namespace
}  // namespace backtrail::server
