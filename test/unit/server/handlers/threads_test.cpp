// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

class ThreadsTest : public SessionTest {
 protected:
  ThreadsTest() {
    target.add_process(0x10);
    target.add_thread(0x10, 0x11);
    target.add_process(0x20);
    offer_all();
  }
};

TEST_F(ThreadsTest, SelectsThreads) {
  EXPECT_EQ(ask("Hgp10.11"), "OK");
  EXPECT_EQ(ask("qC"), "QCp10.11");
  EXPECT_EQ(ask("Hgp20.-1"), "OK");
  EXPECT_EQ(ask("qC"), "QCp20.20");
  EXPECT_EQ(ask("Hgp10.0"), "OK");
  EXPECT_EQ(ask("qC"), "QCp10.10");
}

TEST_F(ThreadsTest, AnyThreadKeepsTheSelection) {
  ask("Hgp20.20");
  EXPECT_EQ(ask("Hgp0.0"), "OK");
  EXPECT_EQ(ask("qC"), "QCp20.20");
  EXPECT_EQ(ask("Hg0"), "OK");
  EXPECT_EQ(ask("qC"), "QCp20.20");
}

TEST_F(ThreadsTest, AnyThreadIsFoundWhenTheSelectedOneIsGone) {
  ask("Hgp10.10");
  target.all.erase(0x10);
  EXPECT_EQ(ask("Hgp0.0"), "OK");
  EXPECT_EQ(ask("qC"), "QCp20.20");
}

TEST_F(ThreadsTest, RefusesThreadsThatAreNotThere) {
  for (const char* bad : {"Hgp10.99", "Hgp99.99", "Hgp99.-1", "Hg-1", "Hgp-1.-1", "Hg", "Hgx",
                          "Hgp10.10x", "Hcp99.1", "Hsp99.1"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
  EXPECT_EQ(ask("Hxp10.10"), "");
}

TEST_F(ThreadsTest, KnowsWhoIsAlive) {
  EXPECT_EQ(ask("Tp10.11"), "OK");
  EXPECT_EQ(ask("T11"), "OK");
  EXPECT_EQ(ask("Tp10.99"), "E01");
  EXPECT_EQ(ask("T0"), "E01");
  EXPECT_EQ(ask("T"), "E01");
}

TEST_F(ThreadsTest, AThreadWhoseEndIsNotToldIsDeadButMayBeNamed) {
  target.ended.insert({0x20, 0x20});
  EXPECT_EQ(ask("Tp20.20"), "E01");
  EXPECT_EQ(ask("Hgp20.20"), "OK");
  EXPECT_EQ(ask("qfThreadInfo"), "mp10.10,p10.11,p20.20");
}

TEST_F(ThreadsTest, ListsAllProcesses) {
  EXPECT_EQ(ask("qfThreadInfo"), "mp10.10,p10.11,p20.20");
  EXPECT_EQ(ask("qsThreadInfo"), "l");
}

TEST_F(ThreadsTest, WithoutMultiprocessIdsArePlain) {
  ask("qSupported:");
  EXPECT_EQ(ask("Hg11"), "OK");
  EXPECT_EQ(ask("qC"), "QC11");
  EXPECT_EQ(ask("qfThreadInfo"), "m10,11,20");
}

TEST_F(ThreadsTest, SaysWhichProcessesWereTakenOver) {
  target.all.at(0x20).attached = true;
  EXPECT_EQ(ask("qAttached:10"), "0");
  EXPECT_EQ(ask("qAttached:20"), "1");
  EXPECT_EQ(ask("qAttached:99"), "E01");
  EXPECT_EQ(ask("qAttached:"), "E01");
  EXPECT_EQ(ask("qAttached"), "0");
}

TEST_F(ThreadsTest, NothingIsSelectableWithoutProcess) {
  target.all.clear();
  for (const char* packet :
       {"Hgp0.0", "Hc-1", "qC", "qfThreadInfo", "qsThreadInfo", "T1", "qAttached", "g", "p0",
        "m1000,1", "M1000,1:00", "X1000,1:0", "Z0,1000,1", "z0,1000,1", "vCont;c", "c", "s"}) {
    EXPECT_EQ(ask(packet), "E01") << packet;
  }
}

TEST_F(ThreadsTest, DisabledPacketsAreUnknown) {
  state.disabled_packets = {"threads"};
  EXPECT_EQ(ask("qC"), "");
  EXPECT_EQ(ask("qfThreadInfo"), "");
  EXPECT_EQ(ask("qsThreadInfo"), "");
  EXPECT_EQ(ask("vCont?"), "");
  EXPECT_EQ(ask("vCont;c"), "");
}

}  // namespace
}  // namespace backtrail::server
