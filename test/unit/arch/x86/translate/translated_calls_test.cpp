// SPDX-License-Identifier: Apache-2.0
// Tests which system calls translated code makes itself, by running it in this process.

#include <algorithm>
#include <array>
#include <bit>
#include <csignal>
#include <cstring>
#include <optional>
#include <ostream>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/syscall.h>

#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "test/unit/arch/x86/translate/compared_stops.hpp"
#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {
namespace {

/// getpid() ignores its arguments, so any check may treat them as it likes. A mov to r10 precedes
/// it, so that the slot of r10 is outdated: mov r10, r8 / mov eax, 39 / syscall.
constexpr std::array<std::uint8_t, 10> kCall{0x4d, 0x89, 0xc2, 0xb8, 39, 0, 0, 0, 0x0f, 0x05};
constexpr std::size_t kRdx = 2;
constexpr std::size_t kRsp = 4;
constexpr std::size_t kRsi = 6;
constexpr std::size_t kRdi = 7;
constexpr std::size_t kR8 = 8;
constexpr std::size_t kR9 = 9;

class TranslatedCalls : public testing::Test {
 protected:
  TranslatedCalls() {
    use(kCall);
    write_far_jump(program_.bytes().subspan(kCall.size()),
                   std::bit_cast<std::uintptr_t>(&bt_test_leave));
  }
  void use(const std::array<std::uint8_t, 10>& code) {
    std::memcpy(program_.bytes().data(), code.data(), code.size());
  }
  void set_ranges(const std::vector<Branch>& ranges) {
    auto part = run_.policy().subspan(static_cast<std::size_t>(Policy::kRanges));
    for (const auto& [begin, end] : ranges) {
      const PolicyRange range{0 - begin.value(), 0 - end.value()};
      std::memcpy(part.data(), &range, sizeof range);
      part = part.subspan(sizeof range);
    }
    std::fill_n(part.begin(), sizeof(PolicyRange), std::uint8_t{0});
  }
  /// Returns true if the call was made, and checks that the result equals a native one.
  bool makes(CallCheck check, std::uint64_t rdi, std::uint64_t rsi, std::uint64_t r10 = 0,
             std::uint64_t rdx = 0x2222) {
    InlineSystemCalls calls{};
    calls[SYS_getpid] = check;
    calls[SYS_futex] = check;
    MachineState before;
    for (std::size_t i = 0; i < before.general.size(); ++i) before.general.at(i) = 0x1111 * i;
    before.general[kRdx] = rdx;
    before.general[kRsp] = stack_.address().value() + kPageBytes / 2;
    before.general[kRdi] = rdi;
    before.general[kRsi] = rsi;
    before.general[kR8] = r10;
    before.general[kR9] = sixth_;
    before.flags = 0xad7;  // All flags are set.
    const TraceeAddr end = program_.address() + kCall.size();
    const CodeSource source{.read = [&](TraceeAddr at, std::span<std::uint8_t> out) -> std::size_t {
                              const std::uint64_t offset = at - program_.address();
                              if (offset >= kCall.size()) return 0;
                              const std::size_t count = std::min(out.size(), kCall.size() - offset);
                              const auto code = program_.bytes().subspan(offset, count);
                              std::copy(code.begin(), code.end(), out.begin());
                              return count;
                            },
                            .stop_before = [&](TraceeAddr at) { return at == end; }};
    const TranslatedRun::Shape shape{.system_calls = &calls};
    const auto found = run_.run(source, program_.address(), end, before, shape);
    ComparedStops compared{{.source = source,
                            .begin = program_.address(),
                            .end = end,
                            .before = before,
                            .data = {},
                            .stack = stack_.bytes()}};
    EXPECT_EQ(compared.differences(run_, source, shape), "");
    EXPECT_EQ(compared.ended(), found.has_value());
    if (!found) return false;
    EXPECT_EQ(*found, TranslatedRun::run_natively(program_.address(), before));
    return true;
  }

  static std::uint64_t path_of(const char* path) { return std::bit_cast<std::uintptr_t>(path); }

  std::uint64_t sixth_ = 0x9999;
  Pages program_{kPageBytes, true};
  Pages stack_{kPageBytes, false};
  TranslatedRun run_;
};

TEST_F(TranslatedCalls, ChangeMemoryThatIsNotExecutable) {
  constexpr std::uint64_t kNear = 0x40'0000;
  constexpr std::uint64_t kFar = 0x7fff'f7dd'2000;
  set_ranges({{TraceeAddr{kNear}, TraceeAddr{kNear + 0x3000}},
              {TraceeAddr{kFar}, TraceeAddr{kFar + 0x1000}}});
  for (const std::uint64_t begin : {kNear, kFar}) {
    const std::uint64_t end = begin == kNear ? begin + 0x3000 : begin + 0x1000;
    EXPECT_TRUE(makes(CallCheck::kRange, begin - 0x1000, 0x1000));
    EXPECT_TRUE(makes(CallCheck::kRange, end, 0x1000));
    EXPECT_TRUE(makes(CallCheck::kRange, end, 0xffff'f000));
    EXPECT_FALSE(makes(CallCheck::kRange, begin - 0x1000, 0x1001));
    EXPECT_FALSE(makes(CallCheck::kRange, begin - 0x10000, 0x20000));
    EXPECT_FALSE(makes(CallCheck::kRange, begin, 1));
    EXPECT_FALSE(makes(CallCheck::kRange, begin, 0x1000));
    EXPECT_FALSE(makes(CallCheck::kRange, end - 0x1000, 0x2000));
  }
}

TEST_F(TranslatedCalls, OfFourGigabytesAndMoreAreLeft) {
  set_ranges({});
  EXPECT_TRUE(makes(CallCheck::kRange, 0x1000, 0xffff'ffff));
  EXPECT_FALSE(makes(CallCheck::kRange, 0x1000, 0x1'0000'0000));
  EXPECT_FALSE(makes(CallCheck::kRange, 0x1000, ~std::uint64_t{0}));
}

TEST_F(TranslatedCalls, MapCodeButNoneThatIsWritableOrReplacesOther) {
  constexpr std::uint64_t kCode = 0x40'0000;
  set_ranges({{TraceeAddr{kCode}, TraceeAddr{kCode + 0x3000}}});
  auto protections = run_.policy().subspan(static_cast<std::size_t>(Policy::kProtections), 256);
  for (std::size_t i = 0; i < protections.size(); ++i) protections[i] = (i & PROT_EXEC) != 0;
  run_.policy()[static_cast<std::size_t>(Policy::kMapFlags) + (MAP_PRIVATE | MAP_FIXED)] = 1;
  constexpr std::uint64_t kReadExecute = PROT_READ | PROT_EXEC;
  for (const std::uint64_t protection : {std::uint64_t{PROT_READ}, kReadExecute}) {
    EXPECT_TRUE(makes(CallCheck::kMap, kCode, 0x1000, MAP_PRIVATE, protection));
    EXPECT_TRUE(makes(CallCheck::kMap, 0x50'0000, 0x1000, MAP_PRIVATE | MAP_FIXED, protection));
    EXPECT_FALSE(makes(CallCheck::kMap, kCode, 0x1000, MAP_PRIVATE | MAP_FIXED, protection));
    EXPECT_FALSE(makes(CallCheck::kProtect, kCode, 0x1000, 0, protection));
  }
  EXPECT_FALSE(makes(CallCheck::kProtect, 0x50'0000, 0x1000, 0, kReadExecute));
  for (const std::uint64_t protection : {std::uint64_t{PROT_EXEC}, kReadExecute | PROT_WRITE,
                                         std::uint64_t{PROT_WRITE | PROT_EXEC}}) {
    EXPECT_FALSE(makes(CallCheck::kMap, 0x50'0000, 0x1000, MAP_PRIVATE, protection));
  }
}

TEST_F(TranslatedCalls, RegisterARestartableAreaAndStopAtTheNextMiss) {
  TranslatedRun::slot(Slot::kServed) = 1;
  EXPECT_FALSE(makes(CallCheck::kRseq, 0x5000, 32, 0, 1)) << "it unregisters the area";
  EXPECT_EQ(TranslatedRun::slot(Slot::kServed), 1U);
  EXPECT_TRUE(makes(CallCheck::kRseq, 0x5000, 32, 0, 0));
  EXPECT_EQ(TranslatedRun::slot(Slot::kServed), 0U);
}

TEST_F(TranslatedCalls, WaitForAndWakeUsually) {
  for (const std::uint64_t operation : kUsualFutexes) {
    EXPECT_TRUE(makes(CallCheck::kUsualFutex, 0, operation));
    EXPECT_FALSE(makes(CallCheck::kUsualFutex, 0, operation + (1ULL << 32)));
    EXPECT_FALSE(makes(CallCheck::kUsualFutex, 0, operation | 0x2000));
  }
  EXPECT_FALSE(makes(CallCheck::kUsualFutex, 0, 0));
  EXPECT_FALSE(makes(CallCheck::kUsualFutex, 0, 0x85));
}

TEST_F(TranslatedCalls, SeeTheirNumberWhenTheyAreMade) {
  auto numbers = run_.policy().subspan(static_cast<std::size_t>(Policy::kNumbers), 512);
  auto high = run_.policy().subspan(static_cast<std::size_t>(Policy::kNumberHigh), 256);
  std::fill(high.begin() + 2, high.end(), std::uint8_t{1});
  // mov r10, r8 / mov rax, r9 / nop / nop / syscall
  constexpr std::array<std::uint8_t, 10> kUnknown{0x4d, 0x89, 0xc2, 0x4c, 0x89,
                                                  0xc8, 0x90, 0x90, 0x0f, 0x05};
  use(kUnknown);
  const auto makes_number = [&](std::uint64_t number, std::uint64_t second = 0x666,
                                CallCheck futex = CallCheck::kAlways) {
    sixth_ = number;
    return makes(futex, 0, second);
  };
  EXPECT_TRUE(makes_number(SYS_getpid));
  EXPECT_TRUE(makes_number(SYS_getpid + (1ULL << 32)));  // The kernel uses 32 bits.
  EXPECT_TRUE(makes_number(511));
  for (unsigned bit = 9; bit < 32; ++bit) {
    EXPECT_FALSE(makes_number(SYS_getpid + (1ULL << bit))) << bit;
  }
  numbers[SYS_getpid] = 1;
  EXPECT_FALSE(makes_number(SYS_getpid));
  EXPECT_TRUE(makes_number(SYS_getppid));
  numbers[SYS_futex] = 1;
  EXPECT_FALSE(makes_number(SYS_futex, 0x81));
  EXPECT_TRUE(makes_number(SYS_futex, 0x81, CallCheck::kUsualFutex));
  EXPECT_FALSE(makes_number(SYS_futex, 0x82, CallCheck::kUsualFutex));
  EXPECT_FALSE(makes_number(SYS_getpid, 0x81, CallCheck::kUsualFutex));
}

TEST_F(TranslatedCalls, OpenFilesButNotForWritingWhatIsThere) {
  auto flags = run_.policy().subspan(static_cast<std::size_t>(Policy::kOpenFlags), 256);
  flags[O_RDWR] = 1;
  for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{O_CLOEXEC}, 1UL << 40U}) {
    EXPECT_TRUE(makes(CallCheck::kOpen, path_of("/etc/hosts"), O_RDONLY | more));
    EXPECT_FALSE(makes(CallCheck::kOpen, path_of("/etc/hosts"), O_RDWR | more));
    EXPECT_TRUE(makes(CallCheck::kOpenAt, O_RDWR, path_of("/etc/hosts"), 0, O_RDONLY | more));
    EXPECT_FALSE(makes(CallCheck::kOpenAt, 3, path_of("/etc/hosts"), 0, O_RDWR | more));
  }
}

TEST_F(TranslatedCalls, OpenFilesButDoNotMakeThemEmpty) {
  auto flags = run_.policy().subspan(static_cast<std::size_t>(Policy::kOpenFlags2), 256);
  flags[O_TRUNC >> 8U] = 1;
  for (const std::uint64_t more : {std::uint64_t{0}, std::uint64_t{O_CREAT}, 1UL << 40U}) {
    EXPECT_TRUE(makes(CallCheck::kOpen, path_of("/etc/hosts"), O_APPEND | more));
    EXPECT_FALSE(makes(CallCheck::kOpen, path_of("/etc/hosts"), O_TRUNC | more));
    EXPECT_TRUE(makes(CallCheck::kOpenAt, O_TRUNC, path_of("/etc/hosts"), 0, O_NONBLOCK | more));
    EXPECT_FALSE(makes(CallCheck::kOpenAt, 3, path_of("/etc/hosts"), 0, O_TRUNC | more));
  }
}

TEST_F(TranslatedCalls, OpenFilesButNoneThatShowsAnAffinity) {
  for (const char* path : {"/proc/self/status", "status", "us", "/a/bus"}) {
    EXPECT_FALSE(makes(CallCheck::kOpen, path_of(path), O_RDONLY)) << path;
    EXPECT_FALSE(makes(CallCheck::kOpenAt, 3, path_of(path), 0, O_RDONLY)) << path;
  }
  for (const char* path : {"/proc/self/stat", "/etc/os", "/u", "/us/", "/ut", "s/"}) {
    EXPECT_TRUE(makes(CallCheck::kOpen, path_of(path), O_RDONLY)) << path;
    EXPECT_TRUE(makes(CallCheck::kOpenAt, 3, path_of(path), 0, O_RDONLY)) << path;
  }
}

TEST_F(TranslatedCalls, WriteToFilesThatNobodyWatches) {
  auto files = run_.policy().subspan(static_cast<std::size_t>(Policy::kWatchedFiles), 256);
  files[3] = 1;
  EXPECT_TRUE(makes(CallCheck::kWrite, 1, 0x5000));
  EXPECT_FALSE(makes(CallCheck::kWrite, 3, 0x5000));
  EXPECT_FALSE(makes(CallCheck::kWrite, 259, 0x5000));
}

TEST_F(TranslatedCalls, TraceButLetNobodyBeTraced) {
  for (const auto request : {PTRACE_PEEKDATA, PTRACE_CONT, PTRACE_DETACH, PTRACE_INTERRUPT}) {
    EXPECT_TRUE(makes(CallCheck::kTrace, static_cast<std::uint64_t>(request), 77));
  }
  for (const auto request : {PTRACE_TRACEME, PTRACE_ATTACH, PTRACE_SEIZE}) {
    EXPECT_FALSE(makes(CallCheck::kTrace, static_cast<std::uint64_t>(request), 77));
  }
}

TEST_F(TranslatedCalls, AskForLimitsButDoNotSetThem) {
  EXPECT_TRUE(makes(CallCheck::kLimits, 0, 3, 0x5000, 0));
  EXPECT_FALSE(makes(CallCheck::kLimits, 0, 3, 0x5000, 0x6000));
  EXPECT_FALSE(makes(CallCheck::kLimits, 0, 3, 0, 1ULL << 63));
}

TEST_F(TranslatedCalls, DoNotAskForTheLimitOfAddressSpace) {
  for (const std::uint64_t high : {0ULL, 1ULL << 32}) {  // The kernel uses 32 bits.
    EXPECT_TRUE(makes(CallCheck::kLimit, RLIMIT_STACK + high, 0x5000));
    EXPECT_FALSE(makes(CallCheck::kLimit, RLIMIT_AS + high, 0x5000));
    EXPECT_FALSE(makes(CallCheck::kLimits, 0, RLIMIT_AS + high, 0x5000, 0));
  }
}

TEST_F(TranslatedCalls, WaitButDoNotChangeTheSignalMask) {
  // The program copies its fourth argument from r8, so it equals the fifth.
  for (const CallCheck check : {CallCheck::kNullFourth, CallCheck::kNullFifth}) {
    EXPECT_TRUE(makes(check, 1, 2, 0));
    EXPECT_FALSE(makes(check, 0, 0, 0x6000));
    EXPECT_FALSE(makes(check, 0, 0, 1ULL << 63));
  }
  EXPECT_FALSE(makes(CallCheck::kNullSixth, 0, 0, 0, 0));
  sixth_ = 0;
  EXPECT_TRUE(makes(CallCheck::kNullSixth, 1, 2, 3, 4));
}

TEST_F(TranslatedCalls, WaitWhileTheRangesChange) {
  constexpr std::uint64_t kEnd = 1ULL << 57;
  set_ranges({{TraceeAddr{1}, TraceeAddr{kEnd}}});
  EXPECT_FALSE(makes(CallCheck::kRange, 0x1000, 0x1000));
  EXPECT_FALSE(makes(CallCheck::kRange, 0x7fff'ffff'e000, 0x1000));
  // The first range is empty, as write_policy() writes it.
  set_ranges({{TraceeAddr{1}, TraceeAddr{0}}, {TraceeAddr{0x5000}, TraceeAddr{0x6000}}});
  EXPECT_TRUE(makes(CallCheck::kRange, 0x1000, 0x1000));
  EXPECT_FALSE(makes(CallCheck::kRange, 0x5000, 0x1000));
}

TEST_F(TranslatedCalls, KeepTrackOfSigsegvInTheSignalMask) {
  auto bits = run_.policy().subspan(static_cast<std::size_t>(Policy::kSegvBit), 256);
  constexpr std::uint64_t kSegv = 1ULL << (SIGSEGV - 1);
  for (std::size_t i = 0; i < bits.size(); ++i) bits[i] = (i << 8U & kSegv) != 0 ? 1 : 0;
  const std::uint64_t with = kSegv | 0xff;
  const std::uint64_t without = ~kSegv;
  const auto blocked_after = [&](std::uint64_t before, int how, const std::uint64_t* set) {
    TranslatedRun::slot(Slot::kSegvBlocked) = before;
    EXPECT_TRUE(makes(CallCheck::kSignalMask, static_cast<std::uint64_t>(how),
                      std::bit_cast<std::uintptr_t>(set), sizeof *set));
    return TranslatedRun::slot(Slot::kSegvBlocked) != 0;
  };
  for (const std::uint64_t before : {0U, 1U}) {
    EXPECT_TRUE(blocked_after(before, SIG_BLOCK, &with));
    EXPECT_EQ(blocked_after(before, SIG_BLOCK, &without), before != 0);
    EXPECT_FALSE(blocked_after(before, SIG_UNBLOCK, &with));
    EXPECT_EQ(blocked_after(before, SIG_UNBLOCK, &without), before != 0);
    EXPECT_TRUE(blocked_after(before, SIG_SETMASK, &with));
    EXPECT_FALSE(blocked_after(before, SIG_SETMASK, &without));
    EXPECT_EQ(blocked_after(before, SIG_SETMASK, nullptr), before != 0);
  }
  // A call that would fail is left to the recorder.
  const auto set = std::bit_cast<std::uintptr_t>(&with);
  EXPECT_FALSE(makes(CallCheck::kSignalMask, 3, set, sizeof with));
  EXPECT_FALSE(makes(CallCheck::kSignalMask, SIG_BLOCK, set, 4));
  EXPECT_FALSE(makes(CallCheck::kSignalMask, SIG_BLOCK, set, sizeof with + (1ULL << 32)));
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
