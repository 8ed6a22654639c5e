// SPDX-License-Identifier: Apache-2.0
#include "ptrace/engine/source_demands.hpp"

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>

#include <gtest/gtest.h>

#include "fake_tasks.hpp"
#include "ptrace/source/branch_source.hpp"

namespace backtrail::tracee {
namespace {

using Clock = std::chrono::steady_clock;

/// Records nothing. Has the demands that it is told to have.
class DemandingSource final : public BranchSource {
 public:
  [[nodiscard]] SourceKind kind() const override { return SourceKind::kCache; }
  Result<void> resume(Thread& /*thread*/, const SourceResume& /*how*/) override { return {}; }
  StopVerdict on_stop(Thread& /*thread*/, const WaitStatus& /*status*/) override {
    return StopVerdict::kReport;
  }
  void on_pc_written(TraceeAddr /*from*/, TraceeAddr /*to*/) override {}
  void on_code_written(TraceeAddr /*begin*/, TraceeAddr /*end*/) override {}
  void flush() override {}
  void detach(Thread& /*thread*/) override {}
  [[nodiscard]] std::string statistics() const override { return {}; }

  bool serve(Thread& /*thread*/) override {
    if (requests == 0) return false;
    --requests;
    return true;
  }
  void let_wait() override { ++let_wait_calls; }
  bool work_ahead(Thread& /*thread*/) override {
    if (work == 0) return false;
    --work;
    return true;
  }
  [[nodiscard]] std::optional<Clock::time_point> stop_due() const override { return due; }

  std::size_t requests = 0;
  std::size_t work = 0;
  std::size_t let_wait_calls = 0;
  std::optional<Clock::time_point> due;
};

class SourceDemandsTest : public testing::Test {
 protected:
  void SetUp() override { thread_.set_source(&source_); }

  FakeTasks tasks_;
  SourceDemands demands_{tasks_.table()};
  DemandingSource source_;
  Process& process_ = tasks_.add_process(100_id);
  Thread& thread_ = tasks_.add_running(process_, 100_id);
};

TEST_F(SourceDemandsTest, CostNothingWithoutADemand) {
  demands_.note_resumed(thread_);
  EXPECT_FALSE(demands_.any_due());
  EXPECT_FALSE(demands_.any_asking());
}

TEST_F(SourceDemandsTest, StopTheirThreadsInTime) {
  source_.due = Clock::now() + std::chrono::hours{1};
  demands_.note_resumed(thread_);
  demands_.stop_who_is_due();
  EXPECT_TRUE(demands_.any_due()) << "its time has not come";
  source_.due = Clock::now();
  demands_.stop_who_is_due();
  EXPECT_FALSE(demands_.any_due()) << "it has been asked";
}

TEST_F(SourceDemandsTest, MayChangeTheirMinds) {
  source_.due = Clock::now() + std::chrono::hours{1};
  demands_.note_resumed(thread_);
  source_.due.reset();
  demands_.stop_who_is_due();
  EXPECT_FALSE(demands_.any_due());
}

TEST_F(SourceDemandsTest, AreForgottenWithTheirThreads) {
  source_.due = Clock::now() + std::chrono::hours{1};
  source_.requests = 1;
  demands_.note_resumed(thread_);
  demands_.note_asking(thread_);
  tasks_.table().remove_thread(thread_);
  demands_.stop_who_is_due();
  EXPECT_FALSE(demands_.any_due());
  EXPECT_FALSE(demands_.serve_one());
  demands_.let_wait();
  EXPECT_EQ(source_.let_wait_calls, 0U);
}

TEST_F(SourceDemandsTest, AreServedWhileTheirThreadsRun) {
  source_.requests = 1;
  EXPECT_FALSE(demands_.serve_one()) << "the thread does not ask";
  demands_.note_asking(thread_);
  EXPECT_TRUE(demands_.any_asking());
  EXPECT_TRUE(demands_.serve_one());
  EXPECT_FALSE(demands_.serve_one()) << "there is no other request";
  source_.requests = 1;
  FakeTasks::stop(thread_);
  EXPECT_FALSE(demands_.serve_one()) << "the thread is stopped";
}

TEST_F(SourceDemandsTest, AreWorkedAheadOfWhileTheirThreadsRun) {
  source_.work = 2;
  EXPECT_FALSE(demands_.work_ahead()) << "the thread does not ask";
  demands_.note_asking(thread_);
  EXPECT_TRUE(demands_.work_ahead());
  FakeTasks::stop(thread_);
  EXPECT_FALSE(demands_.work_ahead()) << "the thread is stopped";
  EXPECT_EQ(source_.work, 1U);
}

TEST_F(SourceDemandsTest, LetTheirThreadsWaitOnce) {
  demands_.note_asking(thread_);
  demands_.let_wait();
  EXPECT_EQ(source_.let_wait_calls, 1U);
  EXPECT_FALSE(demands_.any_asking());
  demands_.let_wait();
  EXPECT_EQ(source_.let_wait_calls, 1U);
}

}  // namespace
}  // namespace backtrail::tracee
