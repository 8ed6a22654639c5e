// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using arch::x86::UserReg;

// 560 bytes: the amd64 layout without AVX that gdbserver sends to a client without XML, and the
// segment bases.
constexpr std::size_t kRip = 16 * 8;

class RegistersTest : public SessionTest {
 protected:
  RegistersTest() { thread = target.add_process(1); }

  arch::x86::UserRegs& user() { return target.thread(thread).registers.user; }

  ThreadId thread;
};

TEST_F(RegistersTest, ReadsAll) {
  user()[UserReg::kRip] = 0x1122334455667788;
  const std::string reply = ask("g");
  EXPECT_EQ(reply.size(), 2 * (*target.register_set(1))->block_bytes());
  EXPECT_EQ(reply.substr(kRip * 2, 16), "8877665544332211");
}

TEST_F(RegistersTest, WritesAll) {
  std::string block = ask("g");
  block.replace(kRip * 2, 16, "0010000000000000");
  EXPECT_EQ(ask("G" + block), "OK");
  EXPECT_EQ(user()[UserReg::kRip], 0x1000U);
}

TEST_F(RegistersTest, OfAClientWithoutDescriptionsEndWithSse) {
  target.set_xcr0(7);
  const std::size_t all = 2 * (*target.register_set(1))->block_bytes();
  for (const char* silent : {"qSupported", "qSupported:multiprocess+;xmlRegisters=arm,i386x"}) {
    ask(silent);
    const std::string block = ask("g");
    EXPECT_EQ(block.size(), 2 * 560U) << silent;
    EXPECT_EQ(ask("G" + block), "OK");
    EXPECT_EQ(ask("qXfer:features:read:target.xml:0,1000").find("<feature"), std::string::npos);
  }
  for (const char* offer : {"qSupported:xmlRegisters=i386", "qSupported:xmlRegisters=arm,i386"}) {
    ask(offer);
    EXPECT_EQ(ask("g").size(), all) << offer;
    EXPECT_NE(ask("qXfer:features:read:target.xml:0,1000").find("<feature"), std::string::npos);
  }
}

TEST_F(RegistersTest, AShorterBlockSetsWhatItCovers) {
  user()[UserReg::kRip] = 0x1234;
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ask("G0100000000000000"), "OK");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("Wrong sized"));
  EXPECT_EQ(user()[UserReg::kRax], 1U);
  EXPECT_EQ(user()[UserReg::kRip], 0x1234U);
}

TEST_F(RegistersTest, ALongerBlockIsCut) {
  ::testing::internal::CaptureStderr();
  EXPECT_EQ(ask("G" + ask("g") + std::string(64, '0')), "OK");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), ::testing::HasSubstr("Wrong sized"));
}

TEST_F(RegistersTest, ReadsAndWritesOne) {
  EXPECT_EQ(ask("P10=efbeadde00000000"), "OK");
  EXPECT_EQ(user()[UserReg::kRip], 0xdeadbeefU);
  EXPECT_EQ(ask("p10"), "efbeadde00000000");
}

TEST_F(RegistersTest, RefusesNonsense) {
  for (const char* bad : {"p", "pzz", "pffffffffffffffff", "p10x", "P", "P10", "P10=", "P10=0",
                          "P10=00", "Pffff=00", "Gxx", "G0"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(RegistersTest, OfARecordingSayThatTheyCannotBeChanged) {
  const std::string block = ask("g");
  target.recorded = true;
  // Every gdb shows this text.
  EXPECT_EQ(ask("P0=0700000000000000"), "E.a recorded crash cannot be changed");
  EXPECT_EQ(ask("G" + block), "E.a recorded crash cannot be changed");
  EXPECT_EQ(ask("g"), block);
}

TEST_F(RegistersTest, RunningThreadsHaveNone) {
  target.thread(thread).running = true;
  EXPECT_EQ(ask("g"), "E01");
}

TEST_F(RegistersTest, ActsOnTheSelectedThread) {
  const ThreadId other = target.add_thread(1, 2);
  target.thread(other).registers.user[UserReg::kRax] = 7;
  ask("Hg2");
  EXPECT_EQ(ask("p0"), "0700000000000000");
  target.all.at(1).threads.erase(2);
  EXPECT_EQ(ask("p0"), "E01");
}

}  // namespace
}  // namespace backtrail::server
