// SPDX-License-Identifier: Apache-2.0
// Stops of threads that are not traced any more: nothing will be heard of them.
#include "ptrace/engine/stopper.hpp"

#include <csignal>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "arch/base/log.hpp"
#include "runner_fixture.hpp"

namespace backtrail::tracee {
namespace {

class StopperTest : public RunnerFixture {
 protected:
  void TearDown() override { EXPECT_EQ(log::errors(), errors_before_) << "waited in vain"; }

  std::uint64_t errors_before_ = log::errors();
  ChildSignal child_signal_;
  ZombieLeaders leaders_{tasks_.table(), events_, runner_, wake_ups_};
  Waiter waiter_{tasks_.table(), demands_, leaders_, child_signal_};
  Stopper stopper_{tasks_.table(), waiter_, runner_, stop_cpu_};
};

TEST_F(StopperTest, HasNothingToDoForStoppedThreads) {
  tasks_.add_stopped(tasks_.add_process(100_id), 100_id);
  EXPECT_TRUE(stopper_.stop_process(100_id));
}

TEST_F(StopperTest, GivesUpAThreadThatTheKernelDoesNotKnow) {
  tasks_.add_running(tasks_.add_process(100_id), 100_id);
  EXPECT_FALSE(stopper_.stop_process(100_id));
}

// The server can wait for such a thread, but in vain.
TEST_F(StopperTest, GivesUpAChildThatIsNotTraced) {
  const pid_t child = ::fork();
  if (child == 0) {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) ::pause();
  }
  ASSERT_GT(child, 0);
  tasks_.add_running(tasks_.add_process(child), child);
  EXPECT_FALSE(stopper_.stop_process(child));
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
}

}  // namespace
}  // namespace backtrail::tracee
