// SPDX-License-Identifier: Apache-2.0
// Commands in a pipe that ends, answers that are read later.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "test/integration/server_process.hpp"
#include "test/support/subprocess.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::EndsWith;
using testing::StartsWith;

/// Bytes that a pipe holds unless told otherwise (pipe(7)).
constexpr int kPipeBytes = 64 << 10;

std::string inferior(const std::string& name) {
  return std::string{BT_INFERIOR_DIR} + "/" + name;
}

/// Starts the server with commands in its standard input. Only answers are on its output: what it
/// prints would have to wait for the reader.
class PipedClient : public testing::Test {
 protected:
  static std::vector<std::string> shell() {
    return {"/bin/sh", "-c", "exec \"$0\" \"$@\" 2>/dev/null", BT_SERVER};
  }
  static std::string framed(std::string_view payload) { return server::rsp::frame_packet(payload); }
  /// Returns requests whose answers are more than a pipe holds, and none of which fails.
  static std::string requests(int count = kSome) {
    std::string all = framed("QStartNoAckMode") + "+" + framed("qSupported:xmlRegisters=i386");
    for (int i = 0; i < count; ++i) all += framed("qXfer:features:read:target.xml:0,3fff");
    return all;
  }
  static long answers_in(const std::string& text) {
    return std::count(text.begin(), text.end(), '#');
  }
  /// Sends commands, ends the input, and waits until the server can write no more. It must not end
  /// within `wait` then.
  static void fill(Server& server, const std::string& commands,
                   std::chrono::milliseconds wait = std::chrono::milliseconds{200}) {
    server.process().write(commands);
    server.process().close_input();
    const auto deadline = deadline_in(kServerPatience);
    int held = 0;
    while (held < kPipeBytes - 4096) {
      ASSERT_LT(std::chrono::steady_clock::now(), deadline);
      ASSERT_EQ(::ioctl(server.process().output().fd(), FIONREAD, &held), 0);
      ::usleep(1000);
    }
    siginfo_t ended{};
    for (const auto until = deadline_in(wait);
         ended.si_pid == 0 && std::chrono::steady_clock::now() < until;) {
      ::waitid(P_PID, static_cast<id_t>(server.process().pid()), &ended,
               WEXITED | WNOHANG | WNOWAIT);
      ::usleep(10'000);
    }
    EXPECT_EQ(ended.si_pid, 0) << "the server has ended, and nobody has read its answers";
  }
  static void expect_all_answers(const std::vector<std::string>& words) {
    for (const int count : {kSome, kMany}) {
      Server server{words, shell()};
      fill(server, requests(count) + framed("vMustReplyEmpty"));
      EXPECT_EQ(server.status(), 0);
      const std::string answers = server.output();
      EXPECT_THAT(answers, StartsWith("+$OK#9a$"));
      EXPECT_THAT(answers, EndsWith("$#00"));
      EXPECT_EQ(answers_in(answers), count + 3);
    }
  }
  /// Checks that the answers before a request to end arrive, however late they are read.
  /// @param answered  The request has an answer.
  static void expect_answers_before(const std::string& end, bool answered,
                                    const std::vector<std::string>& words) {
    Server server{words, shell()};
    fill(server, requests() + framed(end), std::chrono::milliseconds{1500});
    EXPECT_EQ(server.status(), 0) << end;
    EXPECT_EQ(answers_in(server.output()), kSome + (answered ? 3 : 2)) << end;
  }
  /// Makes a crash file.
  [[nodiscard]] std::string crash_file() const {
    std::string file = folder_ / "x.core";
    Subprocess recorder{
        {.arguments = {BT_SERVER, "record", "-o", file, "--", inferior("crashes"), "null"},
         .environment = test_environment(),
         .working_directory = folder_.path()}};
    EXPECT_TRUE(recorder.wait(deadline_in(kServerPatience)));
    return file;
  }

  static constexpr int kSome = 30;
  static constexpr int kMany = 200;  ///< With answers for which the server stops to read.
  TemporaryFolder folder_;
};

TEST_F(PipedClient, GetsAllAnswersOfAServer) {
  expect_all_answers({"serve", "-", inferior("spin")});
}

TEST_F(PipedClient, GetsAllAnswersOfAReplay) {
  expect_all_answers({"replay", "-", crash_file()});
}

TEST_F(PipedClient, GetsTheAnswersBeforeAnEndThatItAsksFor) {
  expect_answers_before("k", false, {"serve", "-", inferior("spin")});
  expect_answers_before("qRcmd,65786974", true, {"serve", "-", inferior("spin")});  // monitor exit
  expect_answers_before("D", true, {"replay", "-", crash_file()});
}

TEST_F(PipedClient, CannotHoldUpASignal) {
  for (const int signal : {SIGTERM, SIGINT}) {
    Server server{{"serve", "-", inferior("spin")}, shell()};
    fill(server, requests());
    server.process().signal(signal);
    EXPECT_EQ(server.status(), 128 + signal);
  }
}

TEST_F(PipedClient, EndsTheServerWhenItReadsNoMore) {
  Server server{{"serve", "-", inferior("spin")}, shell()};
  fill(server, requests());
  server.process().output() = TextStream{};
  EXPECT_EQ(server.status(), 0);
}

}  // namespace
}  // namespace backtrail::test
