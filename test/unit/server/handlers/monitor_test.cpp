// SPDX-License-Identifier: Apache-2.0
#include "arch/base/log.hpp"
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

class MonitorTest : public SessionTest {
 protected:
  /// Returns the text that the user sees, and the last reply.
  std::string monitor(std::string_view command) {
    sink.packets.clear();
    session.on_packet("qRcmd," + hex(command));
    std::string shown;
    for (std::size_t i = 0; i + 1 < sink.packets.size(); ++i) {
      EXPECT_THAT(sink.packets[i], StartsWith("O"));
      shown += rsp::text_from_hex(std::string_view{sink.packets[i]}.substr(1)).value_or("?");
    }
    reply = sink.packets.empty() ? "" : sink.packets.back();
    return shown;
  }

  std::string reply;
};

TEST_F(MonitorTest, Helps) {
  const std::string help = monitor("help");
  EXPECT_EQ(reply, "OK");
  EXPECT_THAT(help, StartsWith("The following monitor commands are supported:\n"));
  for (const char* command :
       {"set debug <on|off|1|0>", "set debug COMPONENT", "set remote-debug", "set debug-format",
        "set libthread-db-search-path", "source", "history [on|off]", "stats", "exit"}) {
    EXPECT_THAT(help, HasSubstr(command));
  }
}

TEST_F(MonitorTest, RefusesOtherCommands) {
  for (const char* bad : {"bogus", "", "help x", "set", "set debug", "set remote-debug 2",
                          "set x y z", "history maybe", "history on off"}) {
    EXPECT_THAT(monitor(bad), StartsWith("Unknown monitor command.\n\nThe following")) << bad;
    EXPECT_EQ(reply, "E01") << bad;
  }
}

TEST_F(MonitorTest, RefusesOddHex) {
  EXPECT_EQ(ask("qRcmd,6"), "E01");
  EXPECT_EQ(ask("qRcmd,zz"), "E01");
}

TEST_F(MonitorTest, SwitchesDebugging) {
  EXPECT_EQ(monitor("set debug 1"), "Debug output enabled.\n");
  EXPECT_TRUE(log::ptrace().writes(log::Level::kDebug));
  EXPECT_EQ(monitor("set debug 0"), "Debug output disabled.\n");
  EXPECT_FALSE(log::ptrace().writes(log::Level::kDebug));
  EXPECT_EQ(monitor("set remote-debug 1"), "Protocol debug output enabled.\n");
  EXPECT_TRUE(log::rsp().writes(log::Level::kDebug));
  monitor("set remote-debug 0");
  EXPECT_FALSE(log::rsp().writes(log::Level::kDebug));
  EXPECT_EQ(monitor("set debug-hw-points 0"), "H/W point debugging output disabled.\n");
  EXPECT_EQ(monitor("set event-loop-debug 0"), "Event loop debug output disabled.\n");
  EXPECT_EQ(reply, "OK");
}

TEST_F(MonitorTest, SwitchesDebuggingOfComponents) {
  EXPECT_EQ(monitor("set debug remote 1"), "Debug output for 'remote' enabled.\n");
  EXPECT_EQ(reply, "OK");
  EXPECT_TRUE(log::rsp().writes(log::Level::kDebug));
  EXPECT_FALSE(log::ptrace().writes(log::Level::kDebug));
  EXPECT_EQ(monitor("set debug remote off"), "Debug output for 'remote' disabled.\n");
  EXPECT_FALSE(log::rsp().writes(log::Level::kDebug));
  EXPECT_EQ(monitor("set debug threads on"), "Debug output for 'threads' enabled.\n");
  EXPECT_TRUE(log::ptrace().writes(log::Level::kDebug));
  EXPECT_EQ(monitor("set debug event-loop on"), "Debug output for 'event-loop' enabled.\n");
  EXPECT_TRUE(log::server().writes(log::Level::kDebug));
  EXPECT_EQ(monitor("set debug all 0"), "Debug output for 'all' disabled.\n");
  EXPECT_FALSE(log::server().writes(log::Level::kDebug));
  EXPECT_FALSE(log::ptrace().writes(log::Level::kDebug));
}

TEST_F(MonitorTest, SaysWhatIsWrongWithDebugging) {
  const std::pair<const char*, const char*> cases[] = {
      {"set debug 2", "Missing value for 'set debug 2' command.\n"},
      {"set debug threads", "Missing value for 'set debug threads' command.\n"},
      {"set debug on x", "Junk 'x' found at end of 'set debug on' command.\n"},
      {"set debug all on x", "Junk 'x' found at end of 'set debug all on' command.\n"},
      {"set debug all yeah", "Invalid value 'yeah' for 'set debug all'.\n"},
      {"set debug yeah 1", "Error: unknown debug option 'yeah'\n"},
  };
  for (const auto& [command, answer] : cases) {
    EXPECT_THAT(monitor(command), StartsWith(answer + std::string{"The following monitor"}));
    EXPECT_EQ(reply, "E01") << command;
  }
}

TEST_F(MonitorTest, AnswersNewerClientsAsNewerGdbserver) {
  ask("qSupported:error-message+");
  EXPECT_EQ(monitor("set debug on"), "General debug output enabled.\n");
  EXPECT_TRUE(log::ptrace().writes(log::Level::kDebug));
  monitor("set remote-debug 1");
  EXPECT_EQ(monitor("set debug 0"), "All debug output disabled.\n");
  EXPECT_FALSE(log::ptrace().writes(log::Level::kDebug));
  EXPECT_FALSE(log::rsp().writes(log::Level::kDebug));
}

TEST_F(MonitorTest, AcceptsDebugFormats) {
  EXPECT_EQ(monitor("set debug-format all"), "All extra debug format options enabled.\n");
  EXPECT_EQ(reply, "OK");
  EXPECT_THAT(monitor("set debug-format zz"),
              StartsWith("Unknown debug-format argument: \"zz\"\n"));
  EXPECT_EQ(reply, "E01");
}

TEST_F(MonitorTest, SetsTheThreadLibrarysPath) {
  EXPECT_EQ(monitor("set libthread-db-search-path /x"), "libthread-db-search-path set to `/x'\n");
  EXPECT_EQ(target.thread_db_search_path, "/x");
  monitor("set libthread-db-search-path");
  EXPECT_EQ(target.thread_db_search_path, "");
}

TEST_F(MonitorTest, NamesTheSource) {
  EXPECT_EQ(monitor("source"), "step: chosen by the test\n");
  EXPECT_EQ(monitor("stats"), "step: chosen by the test\n");
}

TEST_F(MonitorTest, Exits) {
  target.add_process(1);
  EXPECT_EQ(monitor("exit"), "");
  EXPECT_EQ(reply, "OK");
  EXPECT_EQ(session.fate(), SessionFate::kExit);
}

}  // namespace
}  // namespace backtrail::server
