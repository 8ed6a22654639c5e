// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/syscalls/own_memory.hpp"

#include <array>
#include <cerrno>
#include <initializer_list>

#include <sys/mman.h>
#include <sys/shm.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "arch/cpu/syscall_abi.hpp"

namespace backtrail::tracee::cache {
namespace {

using Names = CallAround::Names;
using Parts = std::vector<MemoryRange>;

constexpr std::uint64_t kFirst = 0x10000;
constexpr std::uint64_t kSecond = 0x30000;
constexpr std::uint64_t kBytes = 0x2000;
const std::array<MemoryRange, 2> ours{{{TraceeAddr{kFirst}, TraceeAddr{kFirst + kBytes}},
                                       {TraceeAddr{kSecond}, TraceeAddr{kSecond + kBytes}}}};

CallAround around(std::uint64_t number, std::initializer_list<std::uint64_t> arguments) {
  arch::cpu::UserRegs regs;
  arch::cpu::set_syscall_number(regs, number);
  std::size_t index = 0;
  for (const std::uint64_t argument : arguments) {
    arch::cpu::set_syscall_argument(regs, index++, argument);
  }
  return call_around(regs, ours);
}

Names named(std::uint64_t number, std::initializer_list<std::uint64_t> arguments) {
  return around(number, arguments).names;
}

MemoryRange range(std::uint64_t begin, std::uint64_t end) {
  return {TraceeAddr{begin}, TraceeAddr{end}};
}

TEST(CallAround, IsNoneForMemoryOfTheProgram) {
  EXPECT_EQ(named(SYS_munmap, {kFirst + kBytes, 0x1000}), Names::kNothing);
  EXPECT_EQ(named(SYS_mprotect, {kFirst - 0x1000, 0x1000, PROT_NONE}), Names::kNothing);
  EXPECT_EQ(named(SYS_mmap, {kFirst, kBytes, PROT_NONE, MAP_PRIVATE}), Names::kNothing);
  EXPECT_EQ(named(SYS_getpid, {kFirst, kBytes}), Names::kNothing);
}

TEST(CallAround, IsNoneForArgumentsThatTheKernelRefuses) {
  EXPECT_EQ(named(SYS_munmap, {kFirst + 1, kBytes}), Names::kNothing);
  EXPECT_EQ(named(SYS_munmap, {kFirst, 0}), Names::kNothing);
  EXPECT_EQ(named(SYS_munmap, {kFirst, ~std::uint64_t{0}}), Names::kNothing);
  EXPECT_EQ(named(SYS_munmap, {kFirst, ~std::uint64_t{0} - kFirst}), Names::kNothing);
}

TEST(CallAround, UnmapsAllAround) {
  const CallAround call = around(SYS_munmap, {kFirst - 0x1000, kSecond - kFirst + 0x1001});
  EXPECT_EQ(call.names, Names::kMappings);
  EXPECT_EQ(call.error, 0);
  EXPECT_EQ(call.parts, (Parts{range(kFirst - 0x1000, kFirst), range(kFirst + kBytes, kSecond)}));
}

TEST(CallAround, AdvisesOnAllAroundAndFails) {
  const CallAround call = around(SYS_madvise, {kFirst, 2 * kBytes, MADV_DONTNEED});
  EXPECT_EQ(call.error, ENOMEM);
  EXPECT_EQ(call.parts, Parts{range(kFirst + kBytes, kFirst + 2 * kBytes)});
}

TEST(CallAround, ProtectsUpToTheHole) {
  const CallAround call = around(SYS_mprotect, {kFirst - 0x1000, 4 * kBytes, PROT_NONE});
  EXPECT_EQ(call.error, ENOMEM);
  EXPECT_EQ(call.parts, Parts{range(kFirst - 0x1000, kFirst)});
  EXPECT_EQ(around(SYS_pkey_mprotect, {kFirst, 4 * kBytes, PROT_NONE, 0}).parts, Parts{});
}

TEST(CallAround, MovesNothingOfIt) {
  const CallAround call = around(SYS_mremap, {kFirst, 0, kBytes, MREMAP_MAYMOVE});
  EXPECT_EQ(call.names, Names::kMappings);
  EXPECT_EQ(call.error, EFAULT);
  EXPECT_EQ(call.parts, Parts{});
  EXPECT_EQ(around(SYS_remap_file_pages, {kFirst, kBytes}).error, EINVAL);
}

TEST(CallAround, KnowsWhatIsMappedOverIt) {
  EXPECT_EQ(named(SYS_mmap, {kSecond, 1, PROT_NONE, MAP_FIXED}), Names::kPlaces);
  EXPECT_EQ(named(SYS_mremap, {0x1000, 0x1000, 0x1000, MREMAP_FIXED, kFirst}), Names::kPlaces);
  EXPECT_EQ(named(SYS_mremap, {0x1000, 0x1000, 0x1000, MREMAP_MAYMOVE, kFirst}), Names::kNothing);
  EXPECT_EQ(named(SYS_shmat, {1, kFirst, SHM_REMAP}), Names::kPlaces);
  EXPECT_EQ(named(SYS_shmat, {1, kFirst, 0}), Names::kNothing) << "refused: it is mapped";
}

}  // namespace
}  // namespace backtrail::tracee::cache
