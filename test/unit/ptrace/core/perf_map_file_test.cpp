// SPDX-License-Identifier: Apache-2.0
// Ownership of /tmp/perf-PID.map.
#include "ptrace/core/perf_map_file.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "test/unit/ptrace/fake_proc.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::IsEmpty;

constexpr int kPid = 70;

/// Adds a process of `user` whose own pid is 2.
void add_process(const FakeProc& proc, uid_t user) {
  const std::string id = std::to_string(user);
  proc.add_process(kPid, "node", "Uid:\t" + id + "\t" + id + "\t" + id + "\nNSpid:\t70\t2\n");
}

std::string read(const FakeProc& proc) {
  return read_perf_map(kPid, ProcFs{proc.root()});
}

TEST(PerfMapFile, IsFoundByTheRootAndTheIdThatTheProcessKnows) {
  const FakeProc proc;
  add_process(proc, ::geteuid());
  EXPECT_THAT(read(proc), IsEmpty());
  proc.add("70/root/tmp/perf-70.map", "another's");
  EXPECT_THAT(read(proc), IsEmpty());
  proc.add("70/root/tmp/perf-2.map", "1000 10 f\n");
  EXPECT_EQ(read(proc), "1000 10 f\n");
  EXPECT_THAT(read_perf_map(71, ProcFs{proc.root()}), IsEmpty());
}

TEST(PerfMapFile, OfAnotherUserIsNotBelieved) {
  const FakeProc proc;
  const uid_t user = ::geteuid();
  proc.add("70/root/tmp/perf-2.map", "1000 10 f\n");
  const std::string path = proc.root() + "/70/root/tmp/perf-2.map";
  add_process(proc, user + 1);
  // Only root can give files away, and root's files are trusted.
  if (user == 0) {
    EXPECT_EQ(read(proc), "1000 10 f\n");
    ASSERT_EQ(::chown(path.c_str(), user + 1, user + 1), 0);
    EXPECT_EQ(read(proc), "1000 10 f\n");
    ASSERT_EQ(::chown(path.c_str(), user + 2, user + 2), 0);
  }
  EXPECT_THAT(read(proc), IsEmpty());
}

TEST(PerfMapFile, WhatIsNoFileIsNotRead) {
  const FakeProc proc;
  add_process(proc, ::geteuid());
  const std::string path = proc.root() + "/70/root/tmp/perf-2.map";
  proc.add("70/root/tmp/real", "1000 10 f\n");
  ASSERT_EQ(::symlink("real", path.c_str()), 0);
  EXPECT_THAT(read(proc), IsEmpty());
  ASSERT_EQ(::unlink(path.c_str()), 0);
  // Opening a pipe without a writer would block.
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_THAT(read(proc), IsEmpty());
}

TEST(PerfMapFile, OfAVeryLongOneTheEndIsRead) {
  const FakeProc proc;
  add_process(proc, ::geteuid());
  const std::string last = "\n1000 10 the last one\n";
  proc.add("70/root/tmp/perf-2.map", std::string(kMostPerfMapBytes, 'x') + last);
  EXPECT_EQ(read(proc), last);
}

}  // namespace
}  // namespace backtrail::tracee
