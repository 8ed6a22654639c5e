// SPDX-License-Identifier: Apache-2.0
// Requests to stop threads while other events happen to them.
#include <chrono>

#include <sys/eventfd.h>

#include <gtest/gtest.h>

#include "engine_driver.hpp"
#include "ptrace/os/unique_fd.hpp"

namespace backtrail::tracee {
namespace {

using std::chrono::steady_clock;

TEST(StopsAskedFor, LetTheNewbornGoOn) {
  EngineDriver driver{SourceKind::kCache};
  // Readable, so that pump() returns after each batch.
  const UniqueFd input{::eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK)};
  driver.engine.set_non_stop(true);
  const pid_t pid = driver.launch("churn", {"30"});
  driver.resume_all();
  const auto deadline = steady_clock::now() + std::chrono::minutes{2};
  for (unsigned turn = 0;; ++turn) {
    ASSERT_LT(steady_clock::now(), deadline) << "somebody was left behind";
    driver.engine.pump(input.get());
    if (const auto event = driver.engine.take_event()) {
      EXPECT_EQ(event->kind, StopKind::kProcessExited);
      break;
    }
    if (turn % 8 != 0) continue;
    // Each call holds threads for a moment, some of them just created. Fails once the process has
    // ended.
    if (driver.engine.enable_trace({pid, pid}, {TraceFormat::kBts, 1U << 16U})) {
      (void)driver.engine.disable_trace({pid, pid});
    }
  }
}

}  // namespace
}  // namespace backtrail::tracee
