// SPDX-License-Identifier: Apache-2.0
// Registers, memory, code, values, calls into the program.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/gdb/on_program.hpp"
#include "test/support/machine.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::EndsWith;
using ::testing::HasSubstr;

class Programs : public ::testing::TestWithParam<const char*> {};

TEST_P(Programs, OfEachKindAreDebugged) {
  if (!can_run_inferior(inferior(GetParam()))) GTEST_SKIP() << kNo32Bits;
  GdbSession gdb{on(GetParam())};
  gdb.run_all({"break touch_global", "continue"});
  EXPECT_THAT(gdb.run("finish"), HasSubstr("main"));
  EXPECT_EQ(gdb.value("global"), "9");
  EXPECT_EQ(gdb.value("corner"), "{x = 3, y = 4, weight = 2.5}");
  EXPECT_EQ(gdb.value("add(20, 3)"), "23");
  EXPECT_THAT(gdb.run("info registers"), HasSubstr("eflags"));
  gdb.run("set var global = 1234");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
  EXPECT_TRUE(gdb.wait_for_server("global 1234 text after"));
}
INSTANTIATE_TEST_SUITE_P(Gdb, Programs,
                         ::testing::Values("calls", "calls_static", "calls_no_pie", "calls_i386"));

TEST(Registers, WrittenOnesAreUsed) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break *add", "continue", "set var $rdi = 100", "delete"});
  EXPECT_THAT(gdb.run("finish"), HasSubstr("main"));
  EXPECT_EQ(gdb.value("$rax"), "107");
  gdb.run("set var $xmm0.v2_double[0] = 1.5");
  EXPECT_EQ(gdb.value("$xmm0.v2_double[0]"), "1.5");
  gdb.run("set var $eflags = $eflags | 1");
  EXPECT_THAT(gdb.run("print $eflags"), HasSubstr("CF"));
}

TEST(Registers, SegmentsAndSystemCallNumber) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break touch_global", "continue"});
  EXPECT_EQ(gdb.value("$fs_base == *(unsigned long*)$fs_base"), "1");
  EXPECT_EQ(gdb.value("$gs_base"), "0");
  EXPECT_EQ(gdb.value("$orig_rax"), "-1");
  EXPECT_EQ(gdb.value("$cs"), "51");
}

TEST(Registers, FloatingPointAndVectors) {
  GdbSession gdb{on("vectors")};
  gdb.run_all({"break have_values", "continue"});
  EXPECT_THAT(gdb.run("print $st0"), HasSubstr("3.14159265358979"));
  EXPECT_EQ(gdb.value("$st1"), "1");
  EXPECT_EQ(gdb.value("$xmm1.v2_int64[1]"), "2459565876494606882");
  EXPECT_THAT(gdb.run("info registers float"), HasSubstr("fctrl"));
}

TEST(Registers, Avx512WhereTheCpuHasIt) {
  GdbSession gdb{on("vectors")};
  gdb.run_all({"break have_values", "continue"});
  if (gdb.value("((int)features >> 16) & 1") != "1") GTEST_SKIP() << "this CPU has no AVX-512";
  EXPECT_EQ(gdb.value("/x $zmm9.v8_int64[7]"), "0x1888888888888888");
  EXPECT_EQ(gdb.value("/x $zmm30.v8_int64[0]"), "0x1111111111111111");
  EXPECT_EQ(gdb.value("/x $ymm30.v4_int64[3]"), "0x4444444444444444");
  EXPECT_EQ(gdb.value("/x $k3"), "0x5a5a");
  gdb.run("set var $zmm30.v8_int64[7] = 99");
  gdb.run("stepi");
  EXPECT_EQ(gdb.value("$zmm30.v8_int64[7]"), "99");
}

TEST(Registers, ProtectionKeysWhereTheCpuHasThem) {
  GdbSession gdb{on("calls")};
  const std::string value = gdb.run("print $pkru");
  if (value.find("void") != std::string::npos) GTEST_SKIP() << "this CPU has no protection keys";
  // pkru is 0x55555554, unless the hypervisor hides protection keys.
  Subprocess alone{
      {.arguments = {"gdb", "-nx", "-q", "-batch", "-iex", "set debuginfod enabled off", "-ex",
                     "starti", "-ex", "print $pkru", inferior("calls")},
       .environment = test_environment(),
       .working_directory = {}}};
  alone.close_input();
  ASSERT_TRUE(alone.wait(deadline_in(std::chrono::seconds{60})));
  alone.output().drain();
  EXPECT_THAT(alone.output().text(), EndsWith(value));
}

TEST(Memory, IsReadAndWritten) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  EXPECT_EQ(gdb.value("text"), "\"before\", '\\000' <repeats 25 times>");
  gdb.run("set var text = \"something else                \"");
  EXPECT_THAT(gdb.run("x/s text"), HasSubstr("something else"));
  EXPECT_THAT(gdb.run("x/2i main"), AllOf(HasSubstr("push   %rbp"), HasSubstr("mov    %rsp,%rbp")));
  EXPECT_THAT(gdb.run("print *(int*)16"), HasSubstr("Cannot access memory at address 0x10"));
  EXPECT_THAT(gdb.run("find &corner, +16, 4"), HasSubstr("1 pattern found"));
}

TEST(Memory, CodeCanBePatched) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  gdb.run("set var *(unsigned char*)touch_global = 0xc3");
  gdb.run("break twice");
  gdb.run("continue");
  EXPECT_EQ(gdb.value("global"), "7");
}

TEST(Memory, LargeReadsAndWritesRoundTrip) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break main", "continue"});
  gdb.run("dump binary memory /dev/null $rsp $rsp+4096");
  gdb.run("set $block = (char*)malloc(300000)");
  gdb.run("call (void*)memset($block, 0x5a, 300000)");
  EXPECT_EQ(gdb.value("/x $block[299999]"), "0x5a");
  gdb.run("set var *(int(*)[10])($block + 100000) = {1,2,3,4,5,6,7,8,9,10}");
  EXPECT_EQ(gdb.value("((int*)($block + 100000))[9]"), "10");
}

TEST(Calls, RunFunctionsOfTheProgram) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break twice", "continue"});
  EXPECT_EQ(gdb.value("fib(12)"), "144");
  EXPECT_THAT(gdb.run("print moved(corner, 5)"), HasSubstr("{x = 8, y = 4, weight = 2.5}"));
  gdb.run("call touch_global()");
  EXPECT_EQ(gdb.value("global"), "11");
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(Calls, StopAtBreakpointsInside) {
  GdbSession gdb{on("calls")};
  gdb.run_all({"break twice", "continue", "break fib if n == 3"});
  EXPECT_THAT(gdb.run("print fib(5)"), HasSubstr("stopped while in a function called from GDB"));
  EXPECT_THAT(gdb.run("backtrace"), HasSubstr("<function called from gdb>"));
  gdb.run_all({"delete", "finish"});
  EXPECT_TRUE(gdb.alive());
}

TEST(Calls, InOtherThreads) {
  GdbSession gdb{on("threads")};
  gdb.run_all({"break everyone_worked", "continue", "thread 4"});
  // Other threads may end meanwhile; later gdbs report that.
  EXPECT_THAT(gdb.value("leaf(21)"), EndsWith("42"));
  EXPECT_THAT(gdb.run("continue"), HasSubstr("exited normally"));
}

TEST(ThreadLocals, AreFound) {
  GdbSession gdb{on("environment")};
  gdb.run_all({"break reported", "continue"});
  EXPECT_EQ(gdb.value("thread_local_value"), "12");
  EXPECT_EQ(gdb.value("(int)errno"), "17");
}

TEST(Auxv, IsShown) {
  GdbSession gdb{on("calls")};
  EXPECT_THAT(gdb.run("info auxv"), AllOf(HasSubstr("AT_PHDR"), HasSubstr(inferior("calls"))));
}

TEST(Processes, AreDescribed) {
  GdbSession gdb{on("calls")};
  EXPECT_THAT(gdb.run("info proc"), AllOf(HasSubstr("process "), HasSubstr("exe = ")));
  EXPECT_THAT(gdb.run("info proc mappings"), HasSubstr("[stack]"));
  EXPECT_THAT(gdb.run("info os processes"), HasSubstr("calls"));
}

}  // namespace
}  // namespace backtrail::test
