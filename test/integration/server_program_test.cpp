// SPDX-License-Identifier: Apache-2.0
// The program itself: its lines on stderr, its exit status, and the processes it leaves.

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "ptrace/os/unique_fd.hpp"
#include "test/integration/elf_symbols.hpp"
#include "test/integration/rsp_client.hpp"
#include "test/integration/server_process.hpp"
#include "test/support/subprocess.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::Not;
using testing::StartsWith;

std::string spin() {
  return std::string{BT_INFERIOR_DIR} + "/spin";
}

bool alive(pid_t pid) {
  return ::kill(pid, 0) == 0;
}

/// Returns the process that traces `pid`; 0 = none.
pid_t tracer_of(pid_t pid) {
  std::ifstream status{"/proc/" + std::to_string(pid) + "/status"};
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with("TracerPid:")) return std::atoi(line.c_str() + 10);
  }
  return -1;
}

TEST(ServerProgram, SaysWhatGdbserverSaysInItsOrder) {
  Server server{{"--once", ":0", spin()}};
  const std::uint16_t port = server.port();
  const pid_t program = server.program();
  connect(server).close();
  EXPECT_EQ(server.status(), 0);
  const std::string output = server.output();
  EXPECT_THAT(output,
              StartsWith("Process " + spin() + " created; pid = " + std::to_string(program) +
                         "\nListening on port " + std::to_string(port) +
                         "\nRemote debugging from host 127.0.0.1, port "));
  EXPECT_THAT(output, EndsWith("\nKilling process(es): " + std::to_string(program) + "\n"));
  EXPECT_FALSE(alive(program));
}

TEST(ServerProgram, ListensAgainWhenTheClientIsGone) {
  Server server{{":0", spin()}};
  connect(server).close();
  server.line_after(
      "Remote side has terminated connection.  GDBserver will reopen the connection.");
  RspClient next = connect(server);
  next.send_packet("vMustReplyEmpty");
  EXPECT_EQ(next.read(4), "$#00");
  EXPECT_TRUE(alive(server.program()));
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.status(), 128 + SIGTERM);
  EXPECT_FALSE(alive(server.program()));
}

TEST(ServerProgram, AttachedProgramsGoOnWithoutIt) {
  Subprocess program{
      {.arguments = {spin()}, .environment = test_environment(), .working_directory = {}}};
  const std::string pid = std::to_string(program.pid());
  Server server{{":0", "--attach", pid}};
  EXPECT_EQ(server.line_after("Attached; pid = "), pid);
  EXPECT_NE(server.port(), 0);
  EXPECT_EQ(tracer_of(program.pid()), server.process().pid());
  server.process().signal(SIGTERM);
  EXPECT_EQ(server.status(), 128 + SIGTERM);
  EXPECT_THAT(server.output(), EndsWith("Detaching process(es): " + pid + "\n"));
  EXPECT_TRUE(alive(program.pid()));
  EXPECT_EQ(tracer_of(program.pid()), 0);
}

/// Kills a stopped program, and waits until the server knows.
void kill_outside(pid_t program) {
  ::kill(program, SIGKILL);
  const auto deadline = deadline_in(kServerPatience);
  while (alive(program) && std::chrono::steady_clock::now() < deadline) ::usleep(1000);
  EXPECT_FALSE(alive(program));
}

TEST(ServerProgram, AClientGoesOnWithAProgramThatWasKilled) {
  for (const std::string packet : {"vCont;c", "c", "?"}) {
    Server server{{"--once", ":0", spin()}};
    RspClient client = connect(server);
    kill_outside(server.program());
    client.send_packet(packet);
    const std::string reply = server::rsp::frame_packet("X09");
    EXPECT_EQ(client.read(reply.size()), reply) << packet;
  }
}

TEST(ServerProgram, AProgramThatWasKilledCanBeLeft) {
  Server server{{"--once", ":0", spin()}};
  RspClient client = connect(server);
  kill_outside(server.program());
  client.send_packet("D");
  EXPECT_EQ(client.read(6), "$OK#9a");
  EXPECT_EQ(server.status(), 0);
}

TEST(ServerProgram, AProgramGetsItsArgumentsAsTheyAre) {
  const std::vector<std::string> words{"two words", "", "$HOME", "*", "a;b", "it's", ">out"};
  std::vector<std::string> arguments{"--once", ":0", "/usr/bin/printf", "[%s]"};
  arguments.insert(arguments.end(), words.begin(), words.end());
  Server server{arguments};
  RspClient client = connect(server);
  client.send_packet("vCont;c");
  const std::string reply = server::rsp::frame_packet("W00");
  EXPECT_EQ(client.read(reply.size()), reply);
  client.close();
  EXPECT_THAT(server.output(), HasSubstr("[two words][][$HOME][*][a;b][it's][>out]"));
}

TEST(ServerProgram, StdioIsTheConnection) {
  Server server{{"-", spin()}};
  server.line_after("Remote debugging using stdio");
  server.process().write("$vMustReplyEmpty#3a");
  ASSERT_TRUE(server.process().output().find("+$#00", 0, deadline_in(kServerPatience)));
  server.process().close_input();
  EXPECT_EQ(server.status(), 0);
  EXPECT_THAT(server.output(), StartsWith("stdin/stdout redirected\nProcess " + spin()));
  EXPECT_FALSE(alive(server.program()));
}

TEST(ServerProgram, WhatCannotStartEndsWithStatusOne) {
  for (const std::vector<std::string>& arguments :
       {std::vector<std::string>{":0", "/nonexistent/program"},
        {"--no-startup-with-shell", ":0", "/nonexistent/program"},
        {":0", "/"},
        {":0", "/etc/passwd"},
        {"--attach", ":0", "99999999"},
        {"--wrapper", "/nonexistent/wrapper", "--", ":0", spin()},
        {"--wrapper", "false", "--", ":0", spin()},
        {"nowhere.invalid:0", spin()}}) {
    Server server{arguments};
    EXPECT_EQ(server.status(), 1) << testing::PrintToString(arguments);
    EXPECT_THAT(server.output(), EndsWith("\nExiting\n"));
    EXPECT_THAT(server.output(), Not(HasSubstr("Listening")));
  }
}

TEST(ServerProgram, ReasonsAreGiven) {
  EXPECT_THAT((Server{{"--attach", ":0", "99999999"}}.output()),
              StartsWith("Cannot attach to process 99999999: No such process (3)\n"));
  EXPECT_THAT((Server{{":0", "/nonexistent/program"}}.output()),
              HasSubstr("During startup program exited with code 127."));
  EXPECT_THAT((Server{{"--wrapper", "false", "--", ":0", spin()}}.output()),
              HasSubstr("During startup program exited with code 1."));
}

TEST(ServerProgram, APortInUseStartsNothing) {
  Server first{{":0", spin()}};
  Server second{{":" + std::to_string(first.port()), spin()}};
  EXPECT_EQ(second.status(), 1);
  EXPECT_THAT(second.output(), HasSubstr("cannot listen on "));
  EXPECT_THAT(second.output(),
              HasSubstr("already in use by process " + std::to_string(first.process().pid())));
  EXPECT_THAT(second.output(), Not(HasSubstr("created")));
}

TEST(ServerProgram, ListensOnLoopbackUnlessToldOtherwise) {
  Server server{{":0", spin()}};
  std::ostringstream wanted;
  wanted << std::hex << std::uppercase << server.port();
  std::ifstream table{"/proc/net/tcp"};
  std::string text{std::istreambuf_iterator<char>{table}, {}};
  EXPECT_THAT(text, HasSubstr(" 0100007F:" + wanted.str() + " 00000000:0000 0A"));
}

TEST(ServerProgram, ProgramsInheritNoneOfItsDescriptors) {
  Server server{{":0", spin()}};
  const pid_t program = server.program();
  ASSERT_NE(server.port(), 0);
  for (int fd = 3; fd < 100; ++fd) {
    char target[256] = {};
    const std::string link = "/proc/" + std::to_string(program) + "/fd/" + std::to_string(fd);
    if (::readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    EXPECT_THAT(target, Not(HasSubstr("socket:"))) << fd;
    EXPECT_THAT(target, Not(HasSubstr("anon_inode:"))) << fd;
  }
}

/// Output and exit of `backtrail tail` beside a server.
class TailedServer : public testing::Test {
 protected:
  static Subprocess tail(const std::string& path, const std::vector<std::string>& more = {}) {
    std::vector<std::string> words{BT_SERVER, "tail", "--connect", path};
    words.insert(words.end(), more.begin(), more.end());
    return Subprocess{
        {.arguments = words, .environment = test_environment(), .working_directory = {}}};
  }
  static std::vector<std::string> serve() { return {BT_SERVER, "serve"}; }
  static int status_of(Subprocess& process) {
    const auto raw = process.wait(deadline_in(kServerPatience));
    return raw && WIFEXITED(*raw) ? WEXITSTATUS(*raw) : -1;
  }
  TemporaryFolder folder_;
  std::string path_ = folder_ / "tail";
};

TEST_F(TailedServer, HearsOfProgramsThatRunAndOfTheirEnds) {
  for (const char* source : {"step", "cache"}) {
    Server server{{"--tail", path_, "--source", source, ":0", spin()}, serve()};
    RspClient client = connect(server);
    const std::string pid = std::to_string(server.program());
    // Recording starts and the program continues; the client asks for nothing more.
    for (const std::string packet : {"Qbtrace:bts", "vCont;c"}) client.send_packet(packet);
    Subprocess late = tail(path_, {"--thread", pid});
    Subprocess whole = tail(path_);
    for (Subprocess* each : {&late, &whole}) {
      EXPECT_TRUE(each->output().find(" branch ", 0, deadline_in(kServerPatience))) << source;
    }
    ::kill(server.program(), SIGKILL);
    EXPECT_EQ(status_of(late), 0);
    EXPECT_THAT(late.output().text(), HasSubstr("\n" + pid + " ended\n"));
    ::kill(server.process().pid(), SIGTERM);
    EXPECT_EQ(status_of(whole), 0);
    server.status();
  }
}

TEST_F(TailedServer, HearsOfThreadsThatEndBeforeAnyStop) {
  Server server{
      {"--tail", path_, "--source", "cache", ":0", std::string{BT_INFERIOR_DIR} + "/threads"},
      serve()};
  RspClient client = connect(server);
  client.send_packet("Qbtrace:bts");
  Subprocess all = tail(path_);
  // tail has connected once it prints a step.
  const auto deadline = deadline_in(kServerPatience);
  while (!all.output().find(" branch ", 0, deadline_in(std::chrono::milliseconds{20}))) {
    ASSERT_LT(std::chrono::steady_clock::now(), deadline);
    client.send_packet("vCont;s");
  }
  client.send_packet("vCont;c");
  const std::string end = fmt::format("\n{} ended\n", server.program());
  EXPECT_TRUE(all.output().find(end, 0, deadline_in(kServerPatience)));
  ::kill(server.process().pid(), SIGTERM);
  EXPECT_EQ(status_of(all), 0);
  std::set<std::string> threads;
  std::istringstream lines{all.output().text()};
  for (std::string line; std::getline(lines, line);) {
    if (line.find(" branch ") != std::string::npos) threads.insert(line.substr(0, line.find(' ')));
  }
  EXPECT_EQ(threads.size(), 5U);
}

TEST_F(TailedServer, HearsOfCodeThatRunsWithoutStops) {
  Server server{
      {"--tail", path_, "--source", "cache", ":0", std::string{BT_INFERIOR_DIR} + "/slow_loop"},
      serve()};
  RspClient client = connect(server);
  EXPECT_NE(server.program(), 0);
  for (const std::string packet : {"Qbtrace:bts", "vCont;c"}) client.send_packet(packet);
  const std::uint64_t turn = tracee::symbol_of("slow_loop", "turn").value();
  Subprocess words = tail(path_);
  Subprocess columns = tail(path_, {"--format", "perf-script"});
  const std::string raw = folder_ / "raw";
  Subprocess bytes{{.arguments = {"/bin/sh", "-c", "exec \"$0\" \"$@\" >" + raw, BT_SERVER, "tail",
                                  "--connect", path_, "--format", "raw", "--records", "100"},
                    .environment = test_environment(),
                    .working_directory = {}}};
  for (const auto& [process, call] : {std::pair{&words, fmt::format(" -> {:#x}\n", turn)},
                                      {&columns, fmt::format(" => {:16x}\n", turn)}}) {
    std::size_t from = 0;
    for (int i = 0; i < 50; ++i) {
      const auto found = process->output().find(call, from, deadline_in(kServerPatience));
      ASSERT_TRUE(found) << process->output().text();
      from = *found + 1;
    }
  }
  EXPECT_EQ(status_of(bytes), 0);
  Subprocess decoded{{.arguments = {BT_SERVER, "decode", raw},
                      .environment = test_environment(),
                      .working_directory = {}}};
  EXPECT_EQ(status_of(decoded), 0);
  const std::string& text = decoded.output().text();
  EXPECT_EQ(std::count(text.begin(), text.end(), '\n'), 100);
  EXPECT_THAT(text, HasSubstr(" branch 0x"));
}

TEST_F(TailedServer, LetsPeopleInWhileNothingHappens) {
  Server server{{"--tail", path_, ":0", spin()}, serve()};
  EXPECT_NE(server.port(), 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path_.copy(address.sun_path, sizeof address.sun_path - 1);
  const tracee::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM, 0)};
  // NOLINTNEXTLINE: the socket API takes addresses in this form.
  ASSERT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
            0);
  pollfd waited{socket.get(), POLLIN, 0};
  EXPECT_EQ(
      ::poll(&waited, 1, static_cast<int>(std::chrono::milliseconds{kServerPatience}.count())), 1);
}

TEST_F(TailedServer, SaysWhatIsMissingWhenTheServerIsKilled) {
  Server server{{"--tail", path_, ":0", spin()}, serve()};
  RspClient client = connect(server);
  for (const std::string packet : {"Qbtrace:bts", "vCont;c"}) client.send_packet(packet);
  Subprocess all = tail(path_);
  EXPECT_TRUE(all.output().find(" branch ", 0, deadline_in(kServerPatience)));
  ::kill(server.process().pid(), SIGKILL);
  // The server closes the connection before its listening socket.
  EXPECT_TRUE(server.process().wait(deadline_in(kServerPatience)));
  EXPECT_EQ(status_of(all), 1);
  EXPECT_THAT(all.output().text(), HasSubstr("how much is missing is not known"));
  Subprocess nobody = tail(path_);
  EXPECT_EQ(status_of(nobody), 1);
  EXPECT_THAT(nobody.output().text(), HasSubstr("no server listens there"));
}

}  // namespace
}  // namespace backtrail::test
