// SPDX-License-Identifier: Apache-2.0
// Context-switch records of the real kernel. They need no hardware, only a permission.

#include "ptrace/perf/sched_marks.hpp"

#include <cerrno>
#include <csignal>

#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace backtrail::tracee {
namespace {

using decoder::MarkKind;

/// A child that waits for a byte and sends one back, until its pipe closes.
class Echo {
 public:
  Echo() {
    EXPECT_EQ(::pipe(to_), 0);
    EXPECT_EQ(::pipe(from_), 0);
    pid_ = ::fork();
    if (pid_ != 0) return;
    ::close(to_[1]);
    char byte = 0;
    while (::read(to_[0], &byte, 1) == 1) (void)!::write(from_[1], &byte, 1);
    ::_exit(0);
  }
  ~Echo() {
    ::close(to_[1]);
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    for (const int fd : {to_[0], from_[0], from_[1]}) ::close(fd);
  }
  Echo(const Echo&) = delete;
  Echo& operator=(const Echo&) = delete;

  void round_trip() {
    char byte = 1;
    ASSERT_EQ(::write(to_[1], &byte, 1), 1);
    ASSERT_EQ(::read(from_[0], &byte, 1), 1);
  }
  [[nodiscard]] pid_t pid() const { return pid_; }

 private:
  int to_[2]{};
  int from_[2]{};
  pid_t pid_ = 0;
};

TEST(SchedMarksHere, TellWhenAThreadGotAndLeftACpu) {
  Echo echo;
  echo.round_trip();
  auto opened = SchedMarks::open(system_perf_kernel(), echo.pid());
  if (!opened) {
    const int error = opened.error().code.value();
    if (error == EACCES || error == EPERM || error == ENOSYS || error == ENOENT)
      GTEST_SKIP() << explain_perf_error(opened.error());
    FAIL() << opened.error().message();
  }
  constexpr std::size_t kRounds = 50;
  for (std::size_t i = 0; i < kRounds; ++i) echo.round_trip();
  const auto marks = (*opened)->take();
  EXPECT_EQ((*opened)->lost(), 0U);
  std::size_t arrivals = 0;
  std::uint64_t last = 0;
  for (const auto& mark : marks) {
    EXPECT_GE(mark.time_ns, last);
    EXPECT_GE(mark.cpu, 0);
    last = mark.time_ns;
    arrivals += mark.kind == MarkKind::kArrives ? 1 : 0;
  }
  // Arrivals and departures alternate.
  for (std::size_t i = 1; i < marks.size(); ++i)
    EXPECT_NE(marks[i].kind == MarkKind::kArrives, marks[i - 1].kind == MarkKind::kArrives);
  EXPECT_GT(arrivals, 0U);
  EXPECT_TRUE((*opened)->take().size() < 3);
}

TEST(SchedMarksHere, AThreadThatIsGoneIsAnError) {
  const pid_t pid = ::fork();
  if (pid == 0) ::_exit(0);
  ::waitpid(pid, nullptr, 0);
  EXPECT_FALSE(SchedMarks::open(system_perf_kernel(), pid));
}

}  // namespace
}  // namespace backtrail::tracee
