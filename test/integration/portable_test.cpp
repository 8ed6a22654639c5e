// SPDX-License-Identifier: Apache-2.0
// The portable folder uses none of the machine's libraries and the user's whole environment.
#include <filesystem>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "record_fixture.hpp"
#include "test/support/temporary_folder.hpp"

namespace backtrail::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;
using testing::StartsWith;

class Portable : public testing::Test {
 protected:
  void SetUp() override {
    if (folder.empty())
      GTEST_SKIP() << "this build has no portable folder: it is sanitized, or there is no libc.a";
    ASSERT_TRUE(std::filesystem::exists(folder + "/bin/backtrail"));
  }
  const std::string folder = BT_PORTABLE;
  const std::string program = folder + "/bin/backtrail";
};

/// Returns the files named in the text of /proc/PID/maps.
std::set<std::string> files_in(const std::string& maps) {
  std::set<std::string> files;
  std::istringstream in{maps};
  for (std::string line; std::getline(in, line);) {
    const std::size_t at = line.find('/');
    if (at != std::string::npos) files.insert(line.substr(at));
  }
  return files;
}

TEST_F(Portable, HasOnlyItsOwnFilesInMemory) {
  const Ran ran = run(with({program, "record", "--"}, shell("cat /proc/$PPID/maps")));
  ASSERT_EQ(ran.status, 0);
  const std::set<std::string> files = files_in(ran.output);
  for (const char* name : {"backtrail", "libc.so.6", "ld-linux-x86-64.so.2"}) {
    EXPECT_EQ(files.count(folder + "/lib/backtrail/" + name), 1U) << name;
  }
  for (const std::string& file : files) {
    if (file.starts_with("/memfd:") || file.find("/backtrail/") != std::string::npos) continue;
    EXPECT_THAT(file, StartsWith(folder)) << ran.output;
  }
}

TEST_F(Portable, ProgramsHaveTheUsersEnvironment) {
  Subprocess env{{.arguments = {program, "record", "--", "/usr/bin/env"},
                  .environment = {"A=1", "LD_BIND_NOW=", "B=2", "LD_PRELOAD=", "HOME=/"},
                  .working_directory = {}}};
  EXPECT_EQ(finish(env).output, "A=1\nLD_BIND_NOW=\nB=2\nLD_PRELOAD=\nHOME=/\n");
}

TEST_F(Portable, WhatProgramsPreloadIsNotForIt) {
  const TemporaryFolder elsewhere;
  Subprocess env{{.arguments = {program, "--version"},
                  .environment = {"LD_PRELOAD=" + (elsewhere / "no.so")},
                  .working_directory = {}}};
  EXPECT_THAT(finish(env).output, StartsWith("backtrail "));
}

TEST_F(Portable, IsFoundThroughLinks) {
  const TemporaryFolder elsewhere;
  const std::string link = elsewhere / "backtrail-gdbserver";
  std::filesystem::create_symlink(folder + "/bin/backtrail-gdbserver", link);
  EXPECT_THAT(run({link, "--version"}).output, StartsWith("backtrail-gdbserver "));
}

TEST_F(Portable, IsCalledByItsName) {
  const Ran ran = run(with({program, "record", "--"}, shell("cat /proc/$PPID/comm")));
  EXPECT_EQ(ran.output, "backtrail\n");
}

TEST_F(Portable, WritesCrashFilesPacksAndReportsThem) {
  const TemporaryFolder elsewhere;
  const std::string core = elsewhere / "core";
  EXPECT_EQ(run({program, "record", "-o", core, "--", BT_INFERIOR_DIR "/crashes", "null"}).status,
            1000 + SIGSEGV);
  EXPECT_EQ(run({program, "pack", core}).status, 0);
  const Ran report = run({program, "report", core + ".tar.zst"});
  EXPECT_EQ(report.status, 0);
  EXPECT_THAT(report.output, HasSubstr("SIGSEGV"));
}

TEST_F(Portable, DoctorComparesItWithStep) {
  const Ran ran = run({program, "doctor"});
  EXPECT_EQ(ran.status, 0);
  EXPECT_THAT(ran.output, ContainsRegex("cache +[0-9.]+ ms +equal in all [0-9]+ branches"));
}

TEST_F(Portable, AHalfUnpackedOneSaysSo) {
  const TemporaryFolder elsewhere;
  std::filesystem::create_directory(elsewhere / "bin");
  std::filesystem::copy_file(program, elsewhere / "bin/backtrail");
  const Ran ran = run({elsewhere / "bin/backtrail", "doctor"});
  EXPECT_EQ(ran.status, 127);
  EXPECT_THAT(ran.output, HasSubstr("unpack the whole archive"));
}

}  // namespace
}  // namespace backtrail::test
