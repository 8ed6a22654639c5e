// SPDX-License-Identifier: Apache-2.0
// `backtrail info`, `backtrail pack`, and `replay` of archives.
#include <filesystem>
#include <fstream>

#include <sys/stat.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::AllOf;
using testing::ContainsRegex;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

namespace fs = std::filesystem;

/// Crashes a copy of a program and deletes the copy afterwards.
class CrashPack : public testing::Test {
 protected:
  void crash(const std::string& name, const Words& arguments) {
    fs::copy_file(std::string{BT_INFERIOR_DIR} + "/" + name, folder / "prog");
    const Ran ran = record(
        with({"--source", "cache", "-o", folder / "core", "--", folder / "prog"}, arguments));
    ASSERT_TRUE(fs::exists(folder / "core")) << ran.output;
  }
  Ran backtrail(const Words& words) { return run(with({BT_BACKTRAIL}, words)); }
  Ran gdb(const std::string& file, const Words& commands) {
    Words words{"gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"};
    words.insert(words.end(), {"-ex", "target remote | " BT_BACKTRAIL " replay - " + file});
    for (const std::string& command : commands) words.insert(words.end(), {"-ex", command});
    auto process = std::make_unique<Subprocess>(
        SpawnOptions{.arguments = std::move(words),
                     .environment = with(test_environment(), {"TMPDIR=" + temporary.path()}),
                     .working_directory = folder.path()});
    return finish(*process);
  }

  TemporaryFolder folder;
  TemporaryFolder temporary;
};

TEST_F(CrashPack, RecordPacksWhileTheProgramIsThere) {
  fs::copy_file(BT_INFERIOR_DIR "/crashes", folder / "prog");
  // `go test` deletes its programs this way.
  const std::string prog = folder / "prog";
  const Ran ran = run(shell(BT_BACKTRAIL " record --pack -o " + (folder / "core") + " -- " + prog +
                            " null; rm " + prog));
  EXPECT_THAT(ran.output, ContainsRegex("SIGSEGV in prog .*/core.tar.zst \\([0-9.]+ [kM]B\\)\n"));
  EXPECT_FALSE(fs::exists(folder / "core"));
  EXPECT_THAT(backtrail({"report", folder / "core.tar.zst"}).output, HasSubstr("=> SIGSEGV at "));
}

TEST_F(CrashPack, WhatCannotBePackedStaysAsItIs) {
  fs::create_directory(folder / "core.tar.zst");
  const Ran ran =
      record({"--pack", "-o", folder / "core", "--", BT_INFERIOR_DIR "/crashes", "null"});
  EXPECT_THAT(ran.output, HasSubstr("not packed: "));
  EXPECT_THAT(ran.output, ContainsRegex("SIGSEGV in crashes .*/core \\([0-9.]+ [kM]B\\)\n"));
  EXPECT_TRUE(fs::exists(folder / "core"));
}

TEST_F(CrashPack, HolesOfAnySizeStayHoles) {
  const std::string core = folder / "core";
  crash("crashes", {"null"});
  const auto bytes = fs::file_size(core);
  fs::resize_file(core, std::uintmax_t{400} << 30U);
  EXPECT_EQ(backtrail({"pack", core}).status, 0);
  EXPECT_LT(fs::file_size(core + ".tar.zst"), std::uintmax_t{64} << 20U);
  fs::resize_file(core, bytes);
  EXPECT_EQ(backtrail({"info", core + ".tar.zst"}).status, 0);
}

TEST_F(CrashPack, InfoSaysWhatIsInAFile) {
  crash("crashes", {"null"});
  const Ran ran = backtrail({"info", folder / "core"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output,
              AllOf(ContainsRegex("process  prog \\([0-9]+, x86-64\\)\n"),
                    HasSubstr("/prog null\n"), ContainsRegex("end      SIGSEGV in thread [0-9]+\n"),
                    ContainsRegex("threads  1\n  [0-9]+ +pc 0x[0-9a-f]+, [0-9]+ branches in"),
                    ContainsRegex("here    /[^\n]*/libc.so.6, build-id [0-9a-f]{40}\n"),
                    Not(HasSubstr("damaged"))));
  fs::remove(folder / "prog");
  EXPECT_THAT(backtrail({"info", folder / "core"}).output,
              ContainsRegex("missing /[^\n]*/prog, build-id"));
  EXPECT_EQ(backtrail({"info", "/etc/hostname"}).status, 1);
  EXPECT_EQ(backtrail({"info", folder / "nothing"}).status, 1);
}

TEST_F(CrashPack, AnArchiveIsEnoughForAnotherMachine) {
  crash("crashes", {"null"});
  const Ran packed = backtrail({"pack", folder / "core"});
  ASSERT_EQ(packed.status, 0) << packed.output;
  EXPECT_THAT(packed.output, AllOf(HasSubstr("core.tar.zst: "), Not(HasSubstr("not in it"))));
  fs::remove(folder / "prog");
  fs::remove(folder / "core");
  EXPECT_THAT(backtrail({"info", folder / "core.tar.zst"}).output,
              AllOf(HasSubstr("here "), Not(HasSubstr("missing"))));
  const Ran shown = gdb(folder / "core.tar.zst",
                        {"bt", "info sharedlibrary", "record btrace", "reverse-stepi", "bt 1"});
  EXPECT_THAT(shown.output,
              AllOf(ContainsRegex("#0 .* fault \\(\\)"), ContainsRegex("#1 .* main"),
                    HasSubstr("libc.so.6"), HasSubstr("set substitute-path / " + temporary.path()),
                    Not(HasSubstr("set debug-file-directory"))));
  EXPECT_TRUE(temporary.names().empty()) << "the unpacked files are still there";
}

TEST_F(CrashPack, AnArchivesSourcesAreReadWhereItIsUnpackedTo) {
  crash("crashes", {"null"});
  ASSERT_EQ(backtrail({"pack", folder / "core"}).status, 0);
  fs::remove(folder / "prog");
  const std::string files = folder / "new/place/files";
  const std::string place = "--unpack new/place " + (folder / "core.tar.zst");
  // Set the paths before gdb connects and afterwards; the second time the folder exists already.
  for (const bool before : {true, false}) {
    const std::string told = "set substitute-path / " + files + "/";
    const std::string connect =
        std::string{"target remote | "} + BT_BACKTRAIL + " replay - " + place;
    Words words{"gdb", "-nx", "-batch", "-iex", "set debuginfod enabled off"};
    for (const std::string& command : before ? Words{told, connect} : Words{connect, told}) {
      words.insert(words.end(), {"-ex", command});
    }
    words.insert(words.end(), {"-ex", "list fault", "-ex", "info source"});
    const Ran shown = finish(*start(words, folder.path()));
    EXPECT_THAT(shown.output, AllOf(HasSubstr("set substitute-path / " + files + "/\n"),
                                    HasSubstr("sink = *nowhere;"),
                                    ContainsRegex("Located in " + files + "/[^\n]*crashes.c\n")));
  }
  EXPECT_TRUE(fs::exists(folder / "new/place/crash.core"));
  // Files of the user's own must stay.
  fs::create_directory(folder / "other");
  std::ofstream{folder / "other/file"} << "x";
  for (const std::string& wrong : {folder / "other", folder / "other/file"}) {
    const Ran refused = backtrail({"replay", "--unpack", wrong, "-", folder / "core.tar.zst"});
    EXPECT_EQ(refused.status, 1);
    EXPECT_THAT(refused.output, HasSubstr("backtrail: cannot write '" + wrong + "': "));
  }
  EXPECT_FALSE(fs::exists(folder / "other/crash.core"));
}

TEST_F(CrashPack, TarReadsTheArchive) {
  crash("crashes", {"null"});
  ASSERT_EQ(backtrail({"pack", folder / "core", "-o", folder / "packed"}).status, 0);
  const Ran listed = run({"tar", "--zstd", "-tf", folder / "packed"});
  if (listed.output.find("zstd") != std::string::npos) GTEST_SKIP() << "this tar has no zstd";
  EXPECT_THAT(listed.output, AllOf(HasSubstr("crash.core\n"), HasSubstr("/prog\n"),
                                   HasSubstr("/crashes.c\n"), HasSubstr("/libc.so.6\n")));
}

TEST_F(CrashPack, DamagedArchivesAreErrors) {
  crash("crashes", {"null"});
  ASSERT_EQ(backtrail({"pack", folder / "core", "-o", folder / "packed"}).status, 0);
  fs::resize_file(folder / "packed", fs::file_size(folder / "packed") / 2);
  EXPECT_EQ(backtrail({"info", folder / "packed"}).status, 1);
  EXPECT_EQ(backtrail({"pack", folder / "prog"}).status, 1);
  EXPECT_EQ(backtrail({"pack", folder / "core", "-o", "/no/such/folder/x"}).status, 1);
  EXPECT_THAT(folder.names(), ElementsAre("core", "packed", "prog"));
}

TEST_F(CrashPack, WhatIsNoPlainFileIsNotReplaced) {
  crash("crashes", {"null"});
  const std::string pipe = folder / "pipe";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  const Ran packed = backtrail({"pack", folder / "core", "-o", pipe});
  EXPECT_EQ(packed.status, 1);
  EXPECT_THAT(packed.output, HasSubstr("it is not a plain file and is left alone"));
  EXPECT_TRUE(std::filesystem::is_fifo(pipe));
}

TEST_F(CrashPack, ThreadLocalVariablesCanBeRead) {
  crash("thread_local", {});
  EXPECT_THAT(gdb(folder / "core", {"p per_thread", "thread 2", "p per_thread"}).output,
              AllOf(HasSubstr("$1 = 77"), HasSubstr("$2 = 66")));
}

}  // namespace
}  // namespace backtrail::test
