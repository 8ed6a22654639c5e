// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/attach_check.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/unit/ptrace/fake_proc.hpp"

namespace backtrail::tracee {
namespace {

using testing::HasSubstr;

constexpr const char* kUser = "TracerPid:\t0\nUid:\t1000\t1000\t1000\t0\nGid:\t100\t100\t100\t0\n";

class AttachCheck : public testing::Test {
 protected:
  void SetUp() override {
    set_self("CapEff:\t0000000000000000\n");
    fake_.add_process(50, "target", kUser);
  }
  void set_self(const std::string& rest) {
    fake_.add("self/status", std::string{"Name:\tserver\nTgid:\t40\n"} + kUser + rest);
    fake_.add_process(40, "server", kUser);
  }
  [[nodiscard]] std::string obstacle(pid_t pid) const {
    return attach_obstacle(pid, ProcFs{fake_.root()}).value_or("");
  }
  FakeProc fake_;
};

TEST_F(AttachCheck, SeesNothingAgainstAnOwnProcess) {
  EXPECT_EQ(obstacle(50), "");
}

TEST_F(AttachCheck, NamesProcessesThatCannotBeTraced) {
  EXPECT_THAT(obstacle(51), HasSubstr("no process 51"));
  EXPECT_THAT(obstacle(40), HasSubstr("this server itself"));
  fake_.add_process(52, "dead", kUser, 'Z', 0, 50);
  EXPECT_THAT(obstacle(52), HasSubstr("process 52 (dead) has ended already; its parent, process 50 "
                                      "(target)"));
  fake_.add_process(53, "kworker/0", kUser, 'S', 0x00200000);
  EXPECT_THAT(obstacle(53), HasSubstr("kernel"));
  fake_.add_process(54, "traced", "TracerPid:\t50\nUid:\t1000\t1000\t1000\t0\n");
  EXPECT_THAT(obstacle(54), HasSubstr("traced already, by process 50 (target)"));
  fake_.add_process(55, "thread", kUser);
  fake_.add("55/status", std::string{"Name:\tthread\nTgid:\t50\n"} + kUser);
  EXPECT_THAT(obstacle(55), HasSubstr("55 is a thread of process 50 (target)"));
  fake_.add_process(56, "partly", kUser);
  fake_.add("56/task/57/stat", "");
  fake_.add_process(57, "its thread", "TracerPid:\t50\nUid:\t1000\t1000\t1000\t0\n");
  EXPECT_THAT(obstacle(56), HasSubstr("thread 57 of process 56 (partly) is traced already, by "
                                      "process 50 (target)"));
}

TEST_F(AttachCheck, NamesForeignUsersUnlessCapable) {
  fake_.add_process(60, "root's", "TracerPid:\t0\nUid:\t0\t0\t0\t0\nGid:\t0\t0\t0\t0\n");
  EXPECT_THAT(obstacle(60), HasSubstr("belongs to user 0, this server runs as user 1000"));
  set_self("CapEff:\t0000000000080000\n");
  EXPECT_EQ(obstacle(60), "");
}

TEST_F(AttachCheck, KnowsYama) {
  fake_.add("sys/kernel/yama/ptrace_scope", "1\n");
  EXPECT_THAT(obstacle(50), HasSubstr("ptrace_scope is 1"));
  fake_.add_process(61, "child", kUser, 'S', 0, 62);
  fake_.add_process(62, "middle", kUser, 'S', 0, 40);
  EXPECT_EQ(obstacle(61), "");
  fake_.add("sys/kernel/yama/ptrace_scope", "2\n");
  EXPECT_THAT(obstacle(61), HasSubstr("ptrace_scope is 2"));
  set_self("CapEff:\t0000000000080000\n");
  EXPECT_EQ(obstacle(61), "");
  fake_.add("sys/kernel/yama/ptrace_scope", "3\n");
  EXPECT_THAT(obstacle(61), HasSubstr("ptrace_scope is 3"));
}

TEST_F(AttachCheck, ExplainsARefusal) {
  const ProcFs proc{fake_.root()};
  const Error refused = errno_error(EPERM, "ptrace(PTRACE_SEIZE)");
  EXPECT_THAT(explain_attach_failure(50, refused, proc), HasSubstr("SYS_PTRACE"));
  set_self("Seccomp:\t2\n");
  EXPECT_THAT(explain_attach_failure(50, refused, proc), HasSubstr("seccomp"));
  fake_.add("1/cgroup", "0::/docker/abcdef\n");
  EXPECT_THAT(explain_attach_failure(50, refused, proc), HasSubstr("container (docker)"));
  EXPECT_THAT(explain_attach_failure(50, make_error(TraceErrc::kTraceeGone, "x"), proc),
              HasSubstr("has just ended"));
}

TEST_F(AttachCheck, RecognisesContainers) {
  const ProcFs proc{fake_.root()};
  EXPECT_FALSE(container_kind(proc));
  fake_.add("1/environ", std::string("A=1\0container=lxc\0B=2\0", 22));
  EXPECT_EQ(container_kind(proc), "lxc");
  fake_.add("1/cgroup", "12:pids:/kubepods/besteffort/pod1\n");
  EXPECT_EQ(container_kind(proc), "kubernetes");
  std::ofstream{fake_.base() / ".dockerenv"} << "";
  EXPECT_EQ(container_kind(proc), "docker");
}

}  // namespace
}  // namespace backtrail::tracee
