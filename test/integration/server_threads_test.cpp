// SPDX-License-Identifier: Apache-2.0
// What the server says of threads and processes of which the client does not know everything yet.

#include <csignal>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "ptrace/os/procfs.hpp"
#include "test/integration/elf_symbols.hpp"
#include "test/integration/server_process.hpp"

namespace backtrail::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

constexpr const char* kAbilities =
    "qSupported:multiprocess+;swbreak+;hwbreak+;fork-events+;vfork-events+;exec-events+";

std::string inferior(const std::string& name) {
  return std::string{BT_INFERIOR_DIR} + "/" + name;
}

/// Returns the thread of a stop reply, "pPID.TID".
std::string thread_in(const std::string& stop, const std::string& field) {
  const std::size_t at = stop.find(field);
  if (at == std::string::npos) return "(none) " + stop;
  const std::size_t begin = at + field.size();
  return stop.substr(begin, stop.find(';', begin) - begin);
}

/// Waits for one of the states that /proc shows; '?' stands for a process that is not there.
bool come_to_state(pid_t pid, const std::string& states) {
  const auto deadline = deadline_in(kServerPatience);
  while (std::chrono::steady_clock::now() < deadline) {
    const auto stat = tracee::ProcFs{}.stat(pid);
    if (states.find(stat ? stat->state : '?') != std::string::npos) return true;
    ::usleep(1000);
  }
  return false;
}

/// Connects in non-stop and takes the report of the first stop.
RspClient connect_non_stop(Server& server) {
  RspClient client = connect(server);
  EXPECT_THAT(client.ask(kAbilities), StartsWith("$PacketSize="));
  EXPECT_EQ(client.ask("QNonStop:1"), "$OK");
  EXPECT_THAT(client.ask("?"), StartsWith("$T"));
  EXPECT_EQ(client.ask("vStopped"), "$OK");
  return client;
}

// gdb asks every thread to stop although it has not come to the fork's event yet: it would take a
// stop of the child for one of an unrelated process.
TEST(ServerThreads, AToldForkIsNotFollowedByAStopOfItsChild) {
  Server server{{"--once", ":0", inferior("forks")}};
  RspClient client = connect_non_stop(server);
  EXPECT_EQ(client.ask("vCont;c"), "$OK");
  const std::string fork = client.read_frame();
  ASSERT_THAT(fork, StartsWith("%Stop:T05fork:"));
  EXPECT_EQ(client.ask("vStopped"), "$OK");
  EXPECT_EQ(client.ask("vCont;t"), "$OK");
  // A notification of the child would come first.
  EXPECT_EQ(client.ask("T" + thread_in(fork, "fork:")), "$OK");
}

TEST(ServerThreads, AnAttachedThreadStopsOnce) {
  Subprocess program{{.arguments = {inferior("spin")},
                      .environment = test_environment(),
                      .working_directory = {}}};
  Server server{{"--multi", ":0"}};
  RspClient client = connect(server);
  client.ask(kAbilities);
  EXPECT_EQ(client.ask("QNonStop:1"), "$OK");
  EXPECT_EQ(client.ask("!"), "$OK");
  EXPECT_EQ(client.ask(fmt::format("vAttach;{:x}", program.pid())), "$OK");
  client.send_packet("vCont;t");
  const std::string first = client.read_frame();
  const std::string second = client.read_frame();
  EXPECT_THAT(first + second, HasSubstr("%Stop:T00"));
  EXPECT_THAT(first + second, HasSubstr("$OK"));
  EXPECT_EQ(client.ask("vStopped"), "$OK");
  EXPECT_EQ(client.ask("vCont;t"), "$OK");
  EXPECT_THAT(client.ask("vMustReplyEmpty"), "$");
}

// The server keeps what it knows of threads only as long as none runs.
TEST(ServerThreads, AListHasTheNamesOfNow) {
  Server server{{"--once", ":0", inferior("executes_itself"), "leader"}};
  RspClient client = connect(server);
  client.ask(kAbilities);
  for (int i = 0; i < 2; ++i) {
    EXPECT_THAT(client.ask("qXfer:threads:read::0,1000"), HasSubstr("name=\"executes_itself\""));
  }
  EXPECT_THAT(client.ask("vCont;c"), StartsWith("$T05exec:"));
  EXPECT_THAT(client.ask("qXfer:threads:read::0,1000"), HasSubstr("name=\"exe\""));
}

/// Takes the stops that notifications begin, in any order, until there are `wanted`. Threads that
/// stop late begin another notification. @return Their number.
std::size_t read_stops(RspClient& client, std::size_t wanted) {
  std::size_t seen = 0;
  while (seen < wanted) {
    std::string stop = client.read_frame();
    if (stop.find("T00") == std::string::npos) break;
    for (; stop.find("T00") != std::string::npos; stop = client.ask("vStopped")) ++seen;
  }
  return seen;
}

// A client that connects in non-stop is told of one stopped thread and takes the others for
// running.
TEST(ServerThreads, TheNextNonStopClientCanStopThreadsThatTheFirstHasStopped) {
  constexpr std::size_t kOthers = 4;
  Server server{{":0", inferior("threads_no_pie")}};
  RspClient client = connect_non_stop(server);
  const auto meeting = tracee::symbol_of("threads_no_pie", "everyone_worked");
  EXPECT_EQ(client.ask(fmt::format("Z0,{:x},1", meeting.value())), "$OK");
  EXPECT_EQ(client.ask("vCont;c"), "$OK");
  EXPECT_THAT(client.read_frame(), StartsWith("%Stop:T05swbreak:"));
  EXPECT_EQ(client.ask("vStopped"), "$OK");
  EXPECT_EQ(client.ask("vCont;t"), "$OK");
  EXPECT_EQ(read_stops(client, kOthers), kOthers);
  client.close();
  server.line_after("GDBserver will reopen the connection.");
  RspClient next = connect_non_stop(server);
  EXPECT_EQ(next.ask("vCont;t"), "$OK");
  EXPECT_EQ(read_stops(next, kOthers), kOthers);
  server.process().signal(SIGTERM);
}

// As with gdbserver: it may be named until the client knows, but it is dead.
TEST(ServerThreads, AThreadWhoseEndIsNotToldIsDead) {
  Server server{{"--once", ":0", inferior("spin")}};
  RspClient client = connect(server);
  client.ask(kAbilities);
  const std::string stop = client.ask("?");
  const std::string thread = thread_in(stop, "thread:");
  EXPECT_EQ(client.ask("T" + thread), "$OK");
  ::kill(server.program(), SIGKILL);
  const auto deadline = deadline_in(kServerPatience);
  while (::kill(server.program(), 0) == 0 && std::chrono::steady_clock::now() < deadline) {
    ::usleep(1000);
  }
  EXPECT_EQ(client.ask("T" + thread), "$E01");
  EXPECT_EQ(client.ask("Hg" + thread), "$OK");
  EXPECT_EQ(client.ask("g"), "$E01");
  EXPECT_THAT(client.ask("qfThreadInfo"), HasSubstr(thread));
  EXPECT_THAT(client.ask("vCont;c"), StartsWith("$X09"));
}

// The end is the answer to a resumption, back as well as forward.
TEST(ServerThreads, AStepBackOfAKilledProgramTellsItsEnd) {
  Server server{{"--once", ":0", inferior("spin")}};
  RspClient client = connect(server);
  client.ask(kAbilities);
  client.ask("?");
  ::kill(server.program(), SIGKILL);
  EXPECT_TRUE(come_to_state(server.program(), "Z?"));
  EXPECT_THAT(client.ask("bs"), StartsWith("$X09"));
}

// The server reads the question before the program's end.
TEST(ServerThreads, AThreadThatHasJustBeenKilledIsDead) {
  Server server{{"--once", ":0", inferior("spin")}};
  RspClient client = connect(server);
  client.ask(kAbilities);
  const std::string thread = thread_in(client.ask("?"), "thread:");
  server.process().signal(SIGSTOP);
  ASSERT_TRUE(come_to_state(server.process().pid(), "T"));
  client.send_packet("T" + thread);
  ::kill(server.program(), SIGKILL);
  EXPECT_TRUE(come_to_state(server.program(), "Z"));
  server.process().signal(SIGCONT);
  EXPECT_EQ(client.read_frame(), "$E01");
}

}  // namespace
}  // namespace backtrail::test
