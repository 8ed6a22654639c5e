// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/compat_calls.hpp"

#include <array>
#include <cstdint>
#include <cstring>
#include <initializer_list>

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "arch/cpu/syscall_abi.hpp"
#include "ptrace/codecache/syscalls/own_memory.hpp"

namespace backtrail::tracee::cache {
namespace {

using arch::cpu::UserReg;
using Names = CallAround::Names;

constexpr std::uint64_t kOurs = 0x10000;
constexpr std::uint64_t kBytes = 0x2000;
const std::array<MemoryRange, 1> ours{{{TraceeAddr{kOurs}, TraceeAddr{kOurs + kBytes}}}};

std::size_t reads_nothing(TraceeAddr /*at*/, std::span<std::uint8_t> /*out*/) {
  return 0;
}

arch::cpu::UserRegs compat(std::uint64_t number, std::initializer_list<std::uint64_t> arguments) {
  constexpr std::array kOrder{UserReg::kRbx, UserReg::kRcx, UserReg::kRdx,
                              UserReg::kRsi, UserReg::kRdi, UserReg::kRbp};
  arch::cpu::UserRegs regs;
  arch::cpu::set_syscall_number(regs, number);
  std::size_t index = 0;
  for (const std::uint64_t argument : arguments) regs[kOrder.at(index++)] = argument;
  return regs;
}

Names named(std::uint64_t number, std::initializer_list<std::uint64_t> arguments) {
  const auto plain = as_plain_call(compat(number, arguments), reads_nothing);
  return plain ? call_around(*plain, ours).names : Names::kNothing;
}

TEST(AsPlainCall, TranslatesNumberAndArguments) {
  const auto regs = compat(125, {0xffff'ffff'0001'0000, kBytes, PROT_EXEC});  // mprotect
  EXPECT_TRUE(may_have_plain_call(regs));
  const auto plain = as_plain_call(regs, reads_nothing);
  ASSERT_TRUE(plain);
  EXPECT_EQ(arch::cpu::syscall_number(*plain), static_cast<std::uint32_t>(SYS_mprotect));
  EXPECT_EQ(arch::cpu::syscall_argument(*plain, 0), 0x10000U) << "32 bits of it";
  EXPECT_EQ(arch::cpu::syscall_argument(*plain, 1), kBytes);
  EXPECT_EQ(arch::cpu::syscall_argument(*plain, 2), static_cast<std::uint64_t>(PROT_EXEC));
}

TEST(AsPlainCall, IsNoneForCallsThatChangeNoMappings) {
  EXPECT_FALSE(may_have_plain_call(compat(20, {})));  // getpid
  EXPECT_FALSE(as_plain_call(compat(20, {}), reads_nothing));
}

/// Each call that call_around() judges.
TEST(AsPlainCall, KnowsCallsThatNameTheRecordersMemory) {
  constexpr std::uint64_t kFlags = MREMAP_MAYMOVE | MREMAP_FIXED;
  EXPECT_EQ(named(91, {kOurs, kBytes}), Names::kMappings) << "munmap";
  EXPECT_EQ(named(125, {kOurs, kBytes, PROT_NONE}), Names::kMappings) << "mprotect";
  EXPECT_EQ(named(163, {0x1000, 0x1000, 0x1000, kFlags, kOurs}), Names::kPlaces) << "mremap";
  EXPECT_EQ(named(192, {kOurs, kBytes, PROT_NONE, MAP_FIXED}), Names::kPlaces) << "mmap2";
  EXPECT_EQ(named(219, {kOurs, kBytes, MADV_DONTNEED}), Names::kMappings) << "madvise";
  EXPECT_EQ(named(257, {kOurs, kBytes}), Names::kMappings) << "remap_file_pages";
  EXPECT_EQ(named(380, {kOurs, kBytes, PROT_NONE, 0}), Names::kMappings) << "pkey_mprotect";
  EXPECT_EQ(named(397, {1, kOurs, SHM_REMAP}), Names::kPlaces) << "shmat";
  EXPECT_EQ(named(397, {1, kOurs, 0}), Names::kNothing) << "refused: it is mapped";
}

TEST(AsPlainCall, KnowsSegmentsThatIpcAttaches) {
  constexpr std::uint64_t kIpc = 117;
  constexpr std::uint64_t kShmat = 21;
  constexpr std::uint64_t kResult = 0x5000;
  EXPECT_EQ(named(kIpc, {kShmat, 1, SHM_REMAP, kResult, kOurs}), Names::kPlaces);
  EXPECT_EQ(named(kIpc, {kShmat | 2U << 16U, 1, SHM_REMAP, kResult, kOurs}), Names::kPlaces);
  EXPECT_EQ(named(kIpc, {kShmat | 1U << 16U, 1, SHM_REMAP, kResult, kOurs}), Names::kNothing)
      << "refused: its version";
  EXPECT_EQ(named(kIpc, {kShmat, 1, 0, kResult, kOurs}), Names::kNothing);
  EXPECT_EQ(named(kIpc, {1, 1, SHM_REMAP, kResult, kOurs}), Names::kNothing) << "semop";
}

TEST(AsPlainCall, ReadsArgumentsOfMmapFromMemory) {
  constexpr std::uint64_t kMmap = 90;
  constexpr std::uint64_t kAt = 0x5000;
  const std::array<std::uint32_t, 6> arguments{kOurs, kBytes, PROT_NONE, MAP_FIXED, ~0U, 0};
  const auto regs = compat(kMmap, {kAt});
  const auto plain = as_plain_call(regs, [&](TraceeAddr at, std::span<std::uint8_t> out) {
    EXPECT_EQ(at, TraceeAddr{kAt});
    EXPECT_EQ(out.size(), sizeof arguments);
    std::memcpy(out.data(), arguments.data(), out.size());
    return out.size();
  });
  ASSERT_TRUE(plain);
  EXPECT_EQ(call_around(*plain, ours).names, Names::kPlaces);
  EXPECT_FALSE(as_plain_call(regs, reads_nothing)) << "refused: it cannot be read";
}

}  // namespace
}  // namespace backtrail::tracee::cache
