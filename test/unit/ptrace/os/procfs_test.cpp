// SPDX-License-Identifier: Apache-2.0
#include "ptrace/os/procfs.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include "test/unit/ptrace/fake_proc.hpp"

namespace backtrail::tracee {
namespace {

// The 52 fields that a 6.x kernel writes.
constexpr const char* kStat =
    "4711 (a (b) c) S 17 4711 4700 34816 4711 4194304 1 2 3 4 5 6 7 8 20 0 12 0 987654 100 200 "
    "18446744073709551615 1 1 1 1 1 0 0 0 0 0 0 0 17 3 0 0 0 0 0 0 0 0 0 0 0 0 0\n";

TEST(ProcFs, ParsesStatWithAnAwkwardName) {
  const auto stat = parse_stat(kStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->pid, 4711);
  EXPECT_EQ(stat->comm, "a (b) c");
  EXPECT_EQ(stat->state, 'S');
  EXPECT_EQ(stat->ppid, 17);
  EXPECT_EQ(stat->pgrp, 4711);
  EXPECT_EQ(stat->session, 4700);
  EXPECT_EQ(stat->flags, 4194304U);
  EXPECT_EQ(stat->threads, 12);
  EXPECT_EQ(stat->start_time, 987654U);
  EXPECT_EQ(stat->processor, 3);
  EXPECT_FALSE(stat->zombie());
  EXPECT_FALSE(stat->kernel_thread());
}

TEST(ProcFs, RejectsDamagedStat) {
  for (const char* text : {"", "1", "1 (x", "1 (x)", "1 (x) S 2 3", ")1 (x S", "x (y) S 1 1 1"})
    EXPECT_FALSE(parse_stat(text)) << text;
  // Every cut before the processor field is detected.
  const std::string whole = kStat;
  for (std::size_t n = 0; n < whole.find(" 17 3 "); ++n)
    EXPECT_FALSE(parse_stat(whole.substr(0, n))) << n;
}

TEST(ProcFs, ParsesStatus) {
  const auto status = parse_status(
      "Name:\ttracee\nState:\tt (tracing stop)\nTgid:\t12\nPid:\t13\nPPid:\t1\nTracerPid:\t99\n"
      "Uid:\t1000\t1001\t1002\t1003\nGid:\t5\t6\t7\t8\nNSpid:\t13\t2\n"
      "SigBlk:\t0000000000010000\nSigIgn:\t0000000000001000\nCapEff:\t000001ffffffffff\n"
      "NoNewPrivs:\t1\nSeccomp:\t2\nSeccomp_filters:\t3\nUnknown:\tx\nno colon\n");
  ASSERT_TRUE(status);
  EXPECT_EQ(status->name, "tracee");
  EXPECT_EQ(status->state, 't');
  EXPECT_EQ(status->tgid, 12);
  EXPECT_EQ(status->tracer_pid, 99);
  EXPECT_EQ(status->real_uid, 1000U);
  EXPECT_EQ(status->effective_uid, 1001U);
  EXPECT_EQ(status->saved_uid, 1002U);
  EXPECT_EQ(status->effective_gid, 6U);
  EXPECT_EQ(status->namespace_depth, 2);
  EXPECT_EQ(status->own_id, 2);
  EXPECT_EQ(status->signals_blocked, 0x10000U);
  EXPECT_EQ(status->signals_ignored, 0x1000U);
  EXPECT_EQ(status->effective_capabilities, 0x1ffffffffffU);
  EXPECT_TRUE(status->no_new_privileges);
  EXPECT_EQ(status->seccomp, 2);
  EXPECT_EQ(status->seccomp_filters, 3);
  EXPECT_FALSE(parse_status("Tgid:\tx\n"));
  EXPECT_FALSE(parse_status(""));
}

TEST(ProcFs, ParsesMaps) {
  const auto maps = parse_maps(
      "55d0c0000000-55d0c0001000 r-xp 00002000 fe:01 1234                       /usr/bin/a b\n"
      "7ffff7ff9000-7ffff7ffd000 rw-s 00000000 00:00 0 \n"
      "garbage\n"
      "ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]");
  ASSERT_EQ(maps.size(), 3U);
  EXPECT_EQ(maps[0].start, 0x55d0c0000000U);
  EXPECT_EQ(maps[0].end, 0x55d0c0001000U);
  EXPECT_TRUE(maps[0].read && maps[0].execute && !maps[0].write && !maps[0].shared);
  EXPECT_EQ(maps[0].offset, 0x2000U);
  EXPECT_EQ(maps[0].device_major, 0xfeU);
  EXPECT_EQ(maps[0].device_minor, 1U);
  EXPECT_EQ(maps[0].inode, 1234U);
  EXPECT_EQ(maps[0].path, "/usr/bin/a b");
  EXPECT_TRUE(maps[1].shared && maps[1].write);
  EXPECT_EQ(maps[1].path, "");
  EXPECT_EQ(maps[2].path, "[vsyscall]");
  EXPECT_EQ(parse_maps_line("1000-2000 r-xp 0 00:00 0  /a\\012b\\012\\013")->path, "/a\nb\n\\013");
  EXPECT_FALSE(parse_maps_line("2000-1000 r-xp 0 00:00 0"));
}

TEST(ProcFs, KnowsInstructionSets) {
  std::string elf(
      "\x7f"
      "ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\x3e\0",
      20);
  EXPECT_EQ(elf_isa(elf), arch::Isa::kAmd64);
  elf[4] = 1;  // x32: a 32-bit file of 64-bit code
  EXPECT_EQ(elf_isa(elf), arch::Isa::kAmd64);
  elf[18] = 3;
  EXPECT_EQ(elf_isa(elf), arch::Isa::kI386);
  elf[18] = '\xb7';
  EXPECT_FALSE(elf_isa(elf));
  EXPECT_FALSE(elf_isa(elf.substr(0, 19)));
  EXPECT_FALSE(elf_isa("#!/bin/sh\nexec something"));
  EXPECT_EQ(isa_from_code_segment(0x33), arch::Isa::kAmd64);
  EXPECT_EQ(isa_from_code_segment(0x23), arch::Isa::kI386);
  EXPECT_FALSE(isa_from_code_segment(0));
}

TEST(ProcFs, ReadsAFolderOfTasks) {
  const FakeProc fake;
  fake.add("7/task/7/stat",
           "7 (old) Z 1 7 7 0 0 0 0 0 0 0 0 0 0 0 20 0 2 0 5 0 0 0 0 0 0 0 0 0 0 0 "
           "0 0 0 0 0 17 1 0 0 0\n");
  fake.add("7/task/9/children", "12 10 ");
  fake.add("7/stat", fake.read("7/task/7/stat"));
  fake.add("9/stat",
           "9 (new) S 1 7 7 0 0 0 0 0 0 0 0 0 0 0 20 0 2 0 5 0 0 0 0 0 0 0 0 0 0 0 0 0 0 "
           "0 0 17 1 0 0 0\n");
  fake.add("7/cmdline", std::string("prog\0two words\0\0", 16));
  const ProcFs proc{fake.root()};
  EXPECT_EQ(proc.tasks(7).value(), (std::vector<pid_t>{7, 9}));
  EXPECT_EQ(proc.live_task(7).value(), 9);
  EXPECT_EQ(proc.children(7).value(), (std::vector<pid_t>{10, 12}));
  EXPECT_EQ(proc.command_line(7).value(), (std::vector<std::string>{"prog", "two words", ""}));
  EXPECT_EQ(proc.processes().value(), (std::vector<pid_t>{7, 9}));
  EXPECT_TRUE(proc.stat(8).error().is(TraceErrc::kTraceeGone));
  EXPECT_TRUE(proc.tasks(8).error().is(TraceErrc::kTraceeGone));
  EXPECT_TRUE(proc.exe(7).error().is(TraceErrc::kTraceeGone));
}

TEST(ProcFs, ADeletedProgramIsOpenedByItsLink) {
  const FakeProc fake;
  const auto add = [&](const std::string& id, const std::filesystem::path& target) {
    fake.add(id + "/stat", "");
    std::filesystem::create_symlink(target, fake.base() / "proc" / id / "exe");
  };
  fake.add("named so (deleted)", "");
  add("7", "/prog (deleted)");
  add("8", fake.base() / "proc/named so (deleted)");
  add("9", "/below/another/root");
  const ProcFs proc{fake.root()};
  EXPECT_EQ(proc.program_path(7).value(), fake.root() + "/7/exe");
  EXPECT_EQ(proc.program_path(8).value(), fake.root() + "/named so (deleted)");
  EXPECT_EQ(proc.program_path(9).value(), "/below/another/root");
  EXPECT_TRUE(proc.program_path(10).error().is(TraceErrc::kTraceeGone));
}

TEST(ProcFs, ReadsTheRealOne) {
  const ProcFs proc;
  const pid_t self = ::getpid();
  EXPECT_EQ(proc.stat(self).value().pid, self);
  EXPECT_EQ(proc.status(self).value().tgid, self);
  EXPECT_EQ(proc.isa(self).value(), arch::Isa::kAmd64);
  EXPECT_FALSE(proc.auxv(self).value().empty());
  EXPECT_GT(proc.maps(self).value().size(), 5U);
}

}  // namespace
}  // namespace backtrail::tracee
