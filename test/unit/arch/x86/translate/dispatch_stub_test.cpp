// SPDX-License-Identifier: Apache-2.0
// Tests the dispatch stub: a thread asks a tracer for a translation, and the tracer answers,
// refuses, is slow, or does not look. The thread must go where it is told with an unchanged state.

#include <array>
#include <atomic>
#include <bit>
#include <csignal>
#include <cstring>
#include <optional>
#include <thread>

#include <gtest/gtest.h>

#include "arch/base/page.hpp"
#include "arch/x86/translate/program_state.hpp"
#include "test/unit/arch/x86/translate/stepped.hpp"
#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {
namespace {

/// Includes room for a signal frame below the middle.
constexpr std::size_t kStackBytes = 16 * kPageBytes;
constexpr std::size_t kRcx = 1;
constexpr std::size_t kRsp = 4;
constexpr std::size_t kR10 = 10;
constexpr std::size_t kR11 = 11;

class DispatchStubTest : public testing::Test {
 protected:
  explicit DispatchStubTest(std::uint32_t patience = kPatience)
      : routine_{make_dispatch_stub(code_.address(), patience)} {
    std::memcpy(code_.bytes().data(), routine_.code.data(), routine_.code.size());
    direct_ = code_.address() + routine_.direct_at;
    answer_ = code_.address() + kPageBytes / 2;
    write_far_jump(code_.bytes().subspan(kPageBytes / 2),
                   std::bit_cast<std::uintptr_t>(&bt_test_leave));
    for (std::size_t i = 0; i < before_.general.size(); ++i) before_.general.at(i) = 0x1111 * i;
    before_.general[kRsp] = stack_.address().value() + kStackBytes / 2;
    before_.flags = 0xad7;  // All flags are set.
    // No tracer handles the stub's stop (a trap or a system call) here, so the stub continues and
    // asks again.
    static const bool handled = std::signal(SIGTRAP, [](int) {}) != SIG_ERR;
    EXPECT_TRUE(handled);
    slot(Slot::kMaskAt) = std::bit_cast<std::uintptr_t>(&slot(Slot::kMask));
    slot(Slot::kRequest) = 0;
    slot(Slot::kAnswer) = 0;
    slot(Slot::kRseqArea) = 0;
    slot(Slot::kLog) = 0;
  }
  static std::uint64_t& slot(Slot which) { return TranslatedRun::slot(which); }
  static std::atomic_ref<std::uint64_t> shared(Slot which) {
    return std::atomic_ref<std::uint64_t>{slot(which)};
  }
  static void wait_for(Request state) {
    while (shared(Slot::kRequest) != static_cast<std::uint64_t>(state)) std::this_thread::yield();
  }
  /// Waits until the stub runs, and long enough for it to ask.
  static void expect_no_request() {
    while (shared(Slot::kLog) == 0) std::this_thread::yield();
    for (int i = 0; i < 100'000; ++i) {
      ASSERT_NE(shared(Slot::kRequest), static_cast<std::uint64_t>(Request::kAsked));
    }
  }
  static bool take() {
    auto asked = static_cast<std::uint64_t>(Request::kAsked);
    return shared(Slot::kRequest)
        .compare_exchange_strong(asked, static_cast<std::uint64_t>(Request::kTaken));
  }
  static void take_next() {
    while (!take()) std::this_thread::yield();
  }
  void answer() const {
    shared(Slot::kAnswer) = answer_.value();
    shared(Slot::kRequest) = static_cast<std::uint64_t>(Request::kAnswered);
  }
  template <typename Tracer>
  void run_beside(Tracer tracer) {
    slot(Slot::kServed) = 1;
    std::thread other{tracer};
    EXPECT_EQ(TranslatedRun::run_natively(direct_, before_), before_);
    other.join();
  }

  /// Checks the program's state at any stop within the stub.
  void expect_state(TraceeAddr pc, const MachineState& stopped, const MachineState& program,
                    std::optional<TraceeAddr> target) const {
    const auto offset = static_cast<std::uint32_t>(pc - code_.address());
    SCOPED_TRACE(offset);
    const ProgramState found = state_in_dispatch_stub(
        routine_.entry_at(offset), offset >= routine_.saved_at, user_regs(stopped), slot);
    EXPECT_EQ(found.log.value(), before_.general[kR11]);
    EXPECT_EQ(found.flags, kCommitted);
    EXPECT_TRUE(found.pc == TraceeAddr{} || (target && found.pc == *target));
    // Holds until the target is in the slot that the log's reader uses.
    EXPECT_TRUE(!target || found.pc == *target || slot(Slot::kTarget) == target->value());
    for (std::size_t i = 0; i < kGeneralRegisters.size(); ++i) {
      EXPECT_EQ(found.regs[kGeneralRegisters.at(i)], program.general.at(i)) << i;
    }
    EXPECT_EQ(stopped.vectors, program.vectors);
    EXPECT_EQ(stopped.flags, program.flags);
  }

  Pages code_{kPageBytes, false};
  DispatchStub routine_;
  Pages stack_{kStackBytes, false};
  TraceeAddr answer_;
  TraceeAddr direct_;
  MachineState before_;
};

TEST_F(DispatchStubTest, TakesTheTargetOfAnIndirectTransfer) {
  slot(Slot::kServed) = 1;
  slot(Slot::kRcx) = before_.general[kRcx];
  MachineState entered = before_;
  entered.general[kRcx] = 0x1234;
  std::thread other{[this] {
    take_next();
    answer();
  }};
  EXPECT_EQ(TranslatedRun::run_natively(code_.address(), entered), before_);
  other.join();
  EXPECT_EQ(slot(Slot::kTarget), before_.general[kR10]);
}

TEST_F(DispatchStubTest, GoesWhereItIsTold) {
  run_beside([this] {
    take_next();
    answer();
  });
}

TEST_F(DispatchStubTest, StopsWhenItIsRefused) {
  run_beside([this] {
    take_next();
    shared(Slot::kRequest) = static_cast<std::uint64_t>(Request::kRefused);
    // The stub has asked again, so it had passed the system call that would have stopped it.
    take_next();
    answer();
  });
}

TEST_F(DispatchStubTest, TakesBackWhatNobodyLooksAt) {
  run_beside([this] {
    wait_for(Request::kAsked);
    wait_for(Request::kNone);
    take_next();
    answer();
  });
}

TEST_F(DispatchStubTest, StopsWhenAnAnswerTakesLong) {
  run_beside([this] {
    take_next();
    // The stub asks again although the request was taken.
    wait_for(Request::kAsked);
    take_next();
    answer();
  });
}

TEST_F(DispatchStubTest, AsksOutsideRestartableSequencesAlone) {
  std::array<std::uint64_t, 4> area{0, 0x1000, 0, 0};
  slot(Slot::kRseqArea) = std::bit_cast<std::uintptr_t>(area.data());
  run_beside([&] {
    expect_no_request();
    std::atomic_ref<std::uint64_t>{area[1]} = 0;
    take_next();
    answer();
  });
}

/// Steps through the stub, where each look at the request takes many stops.
class ImpatientDispatchStub : public DispatchStubTest {
 protected:
  ImpatientDispatchStub() : DispatchStubTest{200} {}
};

TEST_F(ImpatientDispatchStub, IsInTheProgramsStateWhereverItIsStopped) {
  for (const bool indirect : {false, true}) {
    SCOPED_TRACE(indirect);
    MachineState program = before_;
    MachineState entered = before_;
    const TraceeAddr target{before_.general[kR10]};
    for (const std::size_t own : {kR10, kR11}) program.general.at(own) = 0x7777 * own;
    slot(Slot::kServed) = 1;
    slot(Slot::kTarget) = 0;
    slot(Slot::kRcx) = indirect ? before_.general[kRcx] : 0;
    slot(Slot::kR10) = program.general[kR10];
    slot(Slot::kR11) = program.general[kR11];
    if (indirect) entered.general[kRcx] = 0x1234;
    unsigned stops = 0;
    const Stepped stepped{{{code_.address(), code_.address() + routine_.code.size()}},
                          [&](TraceeAddr pc, const MachineState& state) {
                            ++stops;
                            expect_state(pc, state, program,
                                         indirect ? std::optional{target} : std::nullopt);
                          }};
    std::thread other{[this] {
      wait_for(Request::kAsked);
      wait_for(Request::kNone);
      take_next();
      shared(Slot::kRequest) = static_cast<std::uint64_t>(Request::kRefused);
      take_next();
      wait_for(Request::kAsked);
      take_next();
      answer();
    }};
    const TraceeAddr begin = indirect ? code_.address() : direct_;
    EXPECT_EQ(TranslatedRun::run_natively(begin, entered), before_);
    other.join();
    EXPECT_GT(stops, 1000U);
  }
}

TEST_F(DispatchStubTest, StopsWhileNobodyServes) {
  run_beside([this] {
    take_next();
    shared(Slot::kServed) = 0;
    shared(Slot::kRequest) = static_cast<std::uint64_t>(Request::kRefused);
    expect_no_request();
    shared(Slot::kServed) = 1;
    take_next();
    answer();
  });
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
