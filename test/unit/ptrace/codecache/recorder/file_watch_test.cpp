// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/recorder/file_watch.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "arch/base/value_kind.hpp"
#include "decoder/trace/constant_memory.hpp"
#include "test/unit/ptrace/codecache/recorder/stopped_child.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;

class FileWatchTest : public ::testing::Test {
 protected:
  bool possible_after(std::uint64_t number, std::initializer_list<std::uint64_t> arguments) {
    child.stand_before(number, arguments);
    watch.begin(child.thread());
    child.stand_behind(0);
    watch.end(child.thread());
    return child.process().code_writers->foreign_writes_possible();
  }

  StoppedChild child;
  FileWatch watch{child.process()};
};

int some_code() {
  return 1;
}

TEST_F(FileWatchTest, OrdinaryCallsWriteNoOthersMemory) {
  EXPECT_FALSE(possible_after(SYS_getpid, {}));
  EXPECT_FALSE(possible_after(SYS_write, {1, 0, 0}));
  EXPECT_FALSE(possible_after(SYS_openat, {0, 0, O_RDONLY}));
}

TEST_F(FileWatchTest, WritesToTheCallersOwnMemoryAreCallsOfTheTrace) {
  const auto self = static_cast<std::uint64_t>(child.thread().tid());
  EXPECT_FALSE(possible_after(SYS_process_vm_writev, {self, 0, 0, 0}));
}

TEST_F(FileWatchTest, NoticesAWriteToAnotherProcess) {
  EXPECT_TRUE(possible_after(SYS_process_vm_writev, {1, 0, 0, 0}));
}

TEST_F(FileWatchTest, NoticesRequestsThatTheKernelFulfilsLater) {
  EXPECT_TRUE(possible_after(SYS_io_uring_setup, {8, 0}));
}

TEST_F(FileWatchTest, MemoryIsConstantUntilACallMayChangeIt) {
  const TraceeAddr code{reinterpret_cast<std::uint64_t>(&some_code)};
  decoder::ConstantMemory memory;
  std::uint64_t record = 0;
  const auto tell = [&](arch::ValueKind kind) {
    ++record;
    for (decoder::ValueFact fact : watch.tell_memory(kind)) {
      fact.record = record;
      memory.take(fact);
    }
  };
  tell(arch::kConstantKind);
  EXPECT_EQ(memory.bytes_at(1, code, 1), 1U);
  child.stand_before(SYS_mprotect, {page_begin(code.value()), kPageBytes, PROT_READ | PROT_WRITE});
  watch.begin(child.thread());
  // Another thread may see the mapping as it was.
  tell(arch::kBecomesConstantKind);
  child.stand_behind(0);
  watch.end(child.thread());
  tell(arch::kBecomesConstantKind);
  EXPECT_EQ(memory.bytes_at(3, code, 1), 0U);
  EXPECT_EQ(memory.bytes_at(4, code, 1), 1U);
}

TEST_F(FileWatchTest, NoticesCallsOfAnUnknownForm) {
  static constexpr std::array<std::uint8_t, 2> kInt80{0xcd, 0x80};
  arch::cpu::UserRegs regs = child.stand_before(SYS_getpid, {});
  regs[UserReg::kRip] = reinterpret_cast<std::uint64_t>(kInt80.data());
  ASSERT_TRUE(child.thread().set_user_regs(regs));
  child.process().forget_insn_bytes();
  watch.begin(child.thread());
  EXPECT_TRUE(child.process().code_writers->foreign_writes_possible());
}

}  // namespace
}  // namespace backtrail::tracee::cache
