// SPDX-License-Identifier: Apache-2.0
#include <csignal>

#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class SettingsTest : public SessionTest {
 protected:
  SettingsTest() { target.add_process(1); }
};

TEST_F(SettingsTest, TranslatesPassedSignals) {
  EXPECT_EQ(ask("QPassSignals:e;1e;14;7;"), "OK");
  EXPECT_THAT(target.passed_signals, ElementsAre(SIGUSR1, SIGALRM, SIGCHLD));
  EXPECT_EQ(ask("QPassSignals:"), "OK");
  EXPECT_THAT(target.passed_signals, IsEmpty());
  EXPECT_EQ(ask("QProgramSignals:0;2"), "OK");
  EXPECT_THAT(target.programmed_signals, ElementsAre(SIGINT));
}

TEST_F(SettingsTest, KnowsASignalByTheNameItIsReportedUnder) {
  EXPECT_EQ(ask("QPassSignals:21"), "OK");  // gdb's POLL, which Linux reports as IO
  EXPECT_THAT(target.passed_signals, IsEmpty());
  EXPECT_EQ(ask("QPassSignals:17"), "OK");
  EXPECT_THAT(target.passed_signals, ElementsAre(SIGIO));
}

TEST_F(SettingsTest, RefusesMalformedSignalLists) {
  for (const char* bad :
       {"QPassSignals:zz", "QPassSignals:;", "QPassSignals:1,2", "QProgramSignals:-1"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(SettingsTest, CatchesSystemCalls) {
  EXPECT_EQ(ask("QCatchSyscalls:1"), "OK");
  EXPECT_THAT(target.caught_syscalls.at(1), ::testing::Optional(IsEmpty()));
  EXPECT_EQ(ask("QCatchSyscalls:1;27;10"), "OK");
  EXPECT_THAT(target.caught_syscalls.at(1), ::testing::Optional(ElementsAre(0x10, 0x27)));
  EXPECT_EQ(ask("QCatchSyscalls:0"), "OK");
  EXPECT_EQ(target.caught_syscalls.at(1), std::nullopt);
  for (const char* bad : {"QCatchSyscalls:2", "QCatchSyscalls:", "QCatchSyscalls:1;",
                          "QCatchSyscalls:1;zz", "QCatchSyscalls:1x", "QCatchSyscalls:9"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
  target.all.clear();
  EXPECT_EQ(ask("QCatchSyscalls:1"), "E01");
}

TEST_F(SettingsTest, SwitchesThreadEvents) {
  EXPECT_EQ(ask("QThreadEvents:1"), "OK");
  EXPECT_EQ(target.thread_events, true);
  EXPECT_EQ(ask("QThreadEvents:0"), "OK");
  EXPECT_EQ(target.thread_events, false);
  EXPECT_EQ(ask("QThreadEvents:2"), "E.Unknown thread-events mode requested: 2");
}

TEST_F(SettingsTest, SetsThreadOptions) {
  const tracee::ThreadOptions clones{.clones = true};
  const tracee::ThreadOptions both{.clones = true, .exit = true};
  target.add_thread(1, 2);
  EXPECT_EQ(ask("QThreadOptions;0;3:p1.2"), "OK");
  EXPECT_EQ((target.thread_options[{1, 1}]), tracee::ThreadOptions{});
  EXPECT_EQ((target.thread_options[{1, 2}]), both);
  EXPECT_EQ(ask("QThreadOptions;1:p1.1"), "OK");
  EXPECT_EQ((target.thread_options[{1, 1}]), clones);
  EXPECT_EQ((target.thread_options[{1, 2}]), both) << "the packet does not name it";
  EXPECT_EQ(ask("QThreadOptions;3:p1.2;0:p1.-1"), "OK");
  EXPECT_EQ((target.thread_options[{1, 2}]), tracee::ThreadOptions{}) << "the last one counts";
  for (const char* bad : {"QThreadOptions", "QThreadOptions;", "QThreadOptions;4",
                          "QThreadOptions;1:", "QThreadOptions;1:p1.2;", "QThreadOptions;1x"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(SettingsTest, LeavesTheOptionsOfUnannouncedThreads) {
  target.add_thread(1, 2);
  ask("QNonStop:1");
  after({.thread = {1, 1}, .kind = tracee::StopKind::kThreadCloned, .child = {1, 2}});
  EXPECT_EQ(ask("QThreadOptions;3"), "OK");
  EXPECT_EQ(target.thread_options.count({1, 1}), 1U);
  EXPECT_EQ(target.thread_options.count({1, 2}), 0U);
}

TEST_F(SettingsTest, ANewClientHasNoThreadOptions) {
  ask("QThreadOptions;3");
  ask("qSupported");
  EXPECT_EQ((target.thread_options[{1, 1}]), tracee::ThreadOptions{});
}

TEST_F(SettingsTest, SwitchesNonStop) {
  EXPECT_EQ(ask("QNonStop:1"), "OK");
  EXPECT_TRUE(state.non_stop);
  EXPECT_EQ(ask("QNonStop:0"), "OK");
  EXPECT_FALSE(target.non_stop);
  EXPECT_EQ(ask("QNonStop:3"), "E01");
  EXPECT_EQ(ask("QNonStop:"), "E01");
}

}  // namespace
}  // namespace backtrail::server
