// SPDX-License-Identifier: Apache-2.0
// gdb, lldb and elfutils read the cores that backtrail writes.
#include <chrono>
#include <csignal>
#include <filesystem>

#include <gmock/gmock.h>

#include "core_fixture.hpp"
#include "test/support/lldb.hpp"
#include "test/support/subprocess.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

std::string output_of(const std::vector<std::string>& words) {
  test::SpawnOptions options;
  options.arguments = words;
  options.environment = test::test_environment();
  test::Subprocess tool{options};
  EXPECT_TRUE(tool.wait(test::deadline_in(std::chrono::seconds{90}))) << words.front();
  return tool.output().text();
}

std::string gdb(const std::string& program, const std::string& core,
                const std::vector<std::string>& commands) {
  std::vector<std::string> words{"gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"};
  for (const std::string& command : commands) words.insert(words.end(), {"-ex", command});
  words.insert(words.end(), {std::string{BT_INFERIOR_DIR} + "/" + program, core});
  return output_of(words);
}

bool has_tool(const std::string& name) {
  return std::filesystem::exists("/usr/bin/" + name);
}

TEST(CoreTools, GdbShowsTheCrash) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_THAT(gdb("crashes", folder / "core",
                  {"bt", "info sharedlibrary", "p $_siginfo.si_signo", "info auxv"}),
              AllOf(HasSubstr("Program terminated with signal SIGSEGV"),
                    ContainsRegex("#0 .* fault \\(\\)"), ContainsRegex("#1 .* in main"),
                    HasSubstr("libc.so.6"), HasSubstr("$1 = 11"), HasSubstr("AT_ENTRY"),
                    Not(HasSubstr("warning"))));
}

TEST(CoreTools, GdbShowsEveryThread) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"threads", "16"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_THAT(gdb("crashes", folder / "core", {"bt", "info threads"}),
              AllOf(HasSubstr("SIGSEGV"), ContainsRegex("#0 .* fault \\(\\)"),
                    HasSubstr("faulting_thread"), ContainsRegex("\n  17  ")));
}

TEST(CoreTools, GdbReadsVectorRegisters) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"vectors"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_THAT(gdb("crashes", folder / "core", {"p/x $xmm3.uint128", "p $st0"}),
              AllOf(HasSubstr("$1 = 0x77777777777777777777777777777777"), HasSubstr("$2 = 3.14159"),
                    Not(HasSubstr("warning"))));
  if (!__builtin_cpu_supports("avx2")) GTEST_SKIP() << "no AVX2 here";
  EXPECT_THAT(
      gdb("crashes", folder / "core", {"p/x $ymm3.v2_int128"}),
      HasSubstr("{0x77777777777777777777777777777777, 0x55555555555555555555555555555555}"));
  if (!__builtin_cpu_supports("avx512f")) GTEST_SKIP() << "no AVX-512 here";
  EXPECT_THAT(gdb("crashes", folder / "core", {"p/x $zmm19.v8_int64[7]", "p/x $k2"}),
              AllOf(HasSubstr("$1 = 0x9999999999999999"), HasSubstr("$2 = 0x5a5a")));
}

TEST(CoreTools, GdbOpensThousandsOfMappings) {
  const TemporaryFolder folder;
  Crash crash{"crashes", {"mappings", "10000"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_THAT(gdb("crashes", folder / "core", {"bt"}), ContainsRegex("#0 .* fault \\(\\)"));
}

TEST(CoreTools, GdbOpensTheNarrowForm) {
  if (!std::filesystem::exists(std::string{BT_INFERIOR_DIR} + "/crashes32")) {
    GTEST_SKIP() << "no 32-bit programs here";
  }
  const TemporaryFolder folder;
  Crash crash{"crashes32", {"null"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_THAT(gdb("crashes32", folder / "core", {"bt", "info threads", "info all-registers"}),
              AllOf(HasSubstr("SIGSEGV"), ContainsRegex("#0 .* fault \\(\\)"),
                    HasSubstr("mxcsr          0x1f80"), Not(HasSubstr("warning"))));
}

TEST(CoreTools, LldbShowsTheCrash) {
  const auto lldb = test::newest_lldb();
  if (!lldb) GTEST_SKIP() << "no lldb here";
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_THAT(
      output_of({"env", "PYTHONPATH=" + lldb->python_path, lldb->command, "--no-lldbinit", "-b",
                 "-c", folder / "core", "-o", "bt", std::string{BT_INFERIOR_DIR} + "/crashes"}),
      AllOf(HasSubstr("SIGSEGV"), HasSubstr("fault"), HasSubstr("main")));
}

TEST(CoreTools, ElfutilsFindsTheModules) {
  if (!has_tool("eu-unstrip")) GTEST_SKIP() << "no elfutils here";
  const TemporaryFolder folder;
  Crash crash{"crashes", {"null"}};
  ASSERT_TRUE(crash.write(folder / "core"));
  EXPECT_THAT(output_of({"eu-unstrip", "-n", "--core=" + folder / "core"}),
              AllOf(HasSubstr("libc.so.6"), HasSubstr("vdso")));
}

}  // namespace
}  // namespace backtrail::tracee
