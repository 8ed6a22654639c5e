// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/osdata.hpp"

#include <gtest/gtest.h>

#include "ptrace/tracee/osdata_detail.hpp"
#include "test/unit/ptrace/fake_proc.hpp"

namespace backtrail::tracee {
namespace {

std::string column(const OsDataRow& row, std::string_view name) {
  for (const auto& [key, value] : row)
    if (key == name) return value;
  return "(no such column)";
}

TEST(OsData, ListsItsTables) {
  const auto types = read_osdata("types");
  ASSERT_TRUE(types);
  EXPECT_EQ(read_osdata("")->size(), types->size());
  for (const OsDataRow& row : *types) {
    EXPECT_FALSE(column(row, "Title").empty());
    EXPECT_TRUE(read_osdata(column(row, "Type"))) << column(row, "Type");
  }
  EXPECT_FALSE(read_osdata("nonsense"));
}

TEST(OsData, ListsProcessesAndThreads) {
  const FakeProc fake;
  fake.add_process(7, "worker", "Uid:\t4000000\t4000000\t4000000\t0\nGid:\t0\t0\t0\t0\n");
  fake.add("7/cmdline", std::string("./worker\0-x\0", 12));
  fake.add_process(9, "idle", "Uid:\t4000000\t4000000\t4000000\t0\nGid:\t0\t0\t0\t0\n");
  const ProcFs proc{fake.root()};
  const auto processes = read_osdata("processes", proc);
  ASSERT_EQ(processes->size(), 2U);
  EXPECT_EQ(column((*processes)[0], "pid"), "7");
  EXPECT_EQ(column((*processes)[0], "user"), "4000000");
  EXPECT_EQ(column((*processes)[0], "command"), "./worker -x");
  EXPECT_EQ(column((*processes)[0], "cores"), "1");
  EXPECT_EQ(column((*processes)[1], "command"), "[idle]");
  const auto threads = read_osdata("threads", proc);
  ASSERT_EQ(threads->size(), 2U);
  EXPECT_EQ(column((*threads)[0], "tid"), "7");
  EXPECT_EQ(column((*threads)[0], "core"), "1");
  EXPECT_EQ(read_osdata("procgroups", proc)->size(), 2U);
}

TEST(OsData, ReadsAddresses) {
  EXPECT_EQ(internet_address("0100007F"), "127.0.0.1");
  EXPECT_EQ(internet_address("00000000000000000000000001000000"), "::1");
  EXPECT_EQ(internet_address("0100"), "");
  EXPECT_EQ(internet_address("0100007G"), "");
}

TEST(OsData, ListsSockets) {
  const FakeProc fake;
  fake.add(
      "net/tcp",
      "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid\n"
      "   0: 0100007F:07E8 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0  0\n");
  const auto sockets = read_osdata("sockets", ProcFs{fake.root()});
  ASSERT_EQ(sockets->size(), 1U);
  EXPECT_EQ(column(sockets->front(), "local address"), "127.0.0.1");
  EXPECT_EQ(column(sockets->front(), "local port"), "2024");
  EXPECT_EQ(column(sockets->front(), "state"), "LISTEN");
}

TEST(OsData, ListsCpus) {
  const FakeProc fake;
  fake.add("cpuinfo", "processor\t: 0\nflags\t\t: a b\n\nprocessor\t: 1\n\n");
  const auto cpus = read_osdata("cpus", ProcFs{fake.root()});
  ASSERT_EQ(cpus->size(), 2U);
  EXPECT_EQ(column((*cpus)[0], "flags"), "a b");
  EXPECT_EQ(column((*cpus)[1], "processor"), "1");
}

}  // namespace
}  // namespace backtrail::tracee
