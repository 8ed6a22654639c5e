// SPDX-License-Identifier: Apache-2.0
// Real threads with buffers that a simulated kernel fills: the engine reads them while threads run.

#include <utility>

#include <sys/eventfd.h>

#include "ptrace/os/unique_fd.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "test/integration/engine_driver.hpp"
#include "test/support/simulated_perf.hpp"

namespace backtrail::tracee {
namespace {

using decoder::perf::RecordType;

class Counter : public decoder::TraceConsumer {
 public:
  void consume(std::span<const decoder::Record> records) override {
    for (const decoder::Record& record : records)
      branches += record.kind == decoder::RecordKind::kBranch ? 1 : 0;
  }
  void consume_mark(const decoder::TraceMark& mark) override { marks.emplace_back(branches, mark); }
  std::uint64_t branches = 0;
  std::vector<std::pair<std::uint64_t, decoder::TraceMark>>
      marks;  ///< Each with the number of branches before it.
};

bool becomes_readable(int fd) {
  pollfd waited{fd, POLLIN, 0};
  constexpr int kMinute = 60'000;
  return ::poll(&waited, 1, kMinute) == 1;
}

/// A program that sleeps; the simulated kernel supplies its records.
struct Sleeper {
  test::SimulatedPerf kernel;
  EngineDriver driver;
  ThreadId id;
  Counter counter;

  explicit Sleeper(SourceKind source) : driver{source} {
    kernel.devices["intel_pt/type"] = "9";
    LaunchSpec spec;
    spec.program = "/bin/sleep";
    spec.arguments = {"1000"};
    spec.through_shell = false;
    const auto pid = driver.engine.launch(spec);
    EXPECT_TRUE(pid);
    id = {pid.value_or(0), pid.value_or(0)};
  }
  ~Sleeper() { EXPECT_TRUE(driver.engine.kill(id.pid)); }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  void record(bool every_record, TraceFormat format = TraceFormat::kBts) {
    const auto enabled = driver.engine.enable_trace(
        id, {.format = format, .size_bytes = 65536, .every_record = every_record, .perf = &kernel});
    ASSERT_TRUE(enabled) << enabled.error().message();
    trace().hub().add(counter);
    driver.resume_all();
    // Without pending input, pump() of a software source would run for ever.
    const UniqueFd input{::eventfd(1, EFD_CLOEXEC)};
    driver.engine.pump(input.get());
  }
  [[nodiscard]] ThreadTrace& trace() { return *driver.engine.find(id)->trace(); }
  /// Writes a branch stack of one entry that does not join the last one.
  void sample() {
    const std::uint64_t from = 0x1000 + 16 * next_++;
    branch_event().write(RecordType::kSample, 0, {from, 1, from, from + 16, 0});
  }
  void fill(unsigned percent) {
    auto& event = branch_event();
    while (event.free_bytes() > event.ring_bytes() * (100 - percent) / 100) sample();
  }

  [[nodiscard]] test::SimulatedEvent& branch_event() { return kernel.event(0); }
  /// Pumps until the condition holds or a minute is over.
  template <typename Condition>
  bool pump_until(Condition condition) {
    for (int i = 0; i < 1000 && !condition(); ++i) {
      if (!becomes_readable(driver.engine.event_fd())) return false;
      driver.engine.pump(-1);
    }
    return condition();
  }

 private:
  std::uint64_t next_ = 0;
};

TEST(PerfStream, IsReadWhileTheThreadRuns) {
  Sleeper sleeper{SourceKind::kLbr};
  sleeper.record(true);
  sleeper.fill(30);
  EXPECT_TRUE(sleeper.kernel.last().readable);
  ASSERT_TRUE(becomes_readable(sleeper.driver.engine.event_fd()));
  sleeper.driver.engine.pump(-1);
  EXPECT_GT(sleeper.counter.branches, 10'000U);
  EXPECT_FALSE(sleeper.driver.engine.take_event());
  EXPECT_TRUE(sleeper.driver.engine.is_running(sleeper.id));
  EXPECT_NE(sleeper.trace().source().statistics().find("held back 0 times"), std::string::npos);
  // Records below the wake-up threshold are read in time too.
  const std::uint64_t before = sleeper.counter.branches;
  sleeper.sample();
  for (int i = 0; i < 1000 && sleeper.counter.branches == before; ++i) {
    ASSERT_TRUE(becomes_readable(sleeper.driver.engine.event_fd()));
    sleeper.driver.engine.pump(-1);
  }
  EXPECT_EQ(sleeper.counter.branches, before + 1);
}

TEST(PerfStream, HoldsBackAThreadThatIsTooFast) {
  Sleeper sleeper{SourceKind::kLbr};
  sleeper.record(true);
  bool once = true;
  sleeper.kernel.on_load = [&] {
    // While the engine reads, the same amount arrives again.
    if (sleeper.kernel.last().page().data_tail == 0 || !std::exchange(once, false)) return;
    sleeper.fill(60);
  };
  sleeper.fill(60);
  for (int i = 0; i < 1000 && once; ++i) {
    ASSERT_TRUE(becomes_readable(sleeper.driver.engine.event_fd()));
    sleeper.driver.engine.pump(-1);
  }
  sleeper.kernel.on_load = {};
  const std::string said = sleeper.trace().source().statistics();
  EXPECT_NE(said.find("held back 1 times"), std::string::npos) << said;
  EXPECT_EQ(sleeper.kernel.last().lost_total, 0U);
  EXPECT_FALSE(sleeper.driver.engine.take_event());
  EXPECT_TRUE(sleeper.driver.engine.is_running(sleeper.id));
}

TEST(PerfStream, BeginsWhenSomebodyAsksForEveryRecord) {
  Sleeper sleeper{SourceKind::kPerfPt};
  sleeper.record(false, TraceFormat::kPt);
  EXPECT_TRUE(sleeper.kernel.last().snapshot);
  EXPECT_LT(sleeper.trace().source().wake_fd(), 0);
  ASSERT_TRUE(sleeper.driver.engine.stream_trace(sleeper.id));
  EXPECT_EQ(sleeper.kernel.open_events(), 1U);
  EXPECT_FALSE(sleeper.kernel.last().snapshot);
  EXPECT_EQ(sleeper.kernel.last().aux_size, 4U << 20U);
  EXPECT_TRUE(sleeper.kernel.last().enabled);
  EXPECT_TRUE(sleeper.driver.engine.is_running(sleeper.id));
  ASSERT_TRUE(sleeper.driver.engine.stream_trace(sleeper.id));  // A second call has no effect.
  EXPECT_EQ(sleeper.kernel.opened.size(), 2U);
  sleeper.kernel.last().aux_bytes(std::vector<std::uint8_t>(sleeper.kernel.last().aux_size / 2));
  ASSERT_TRUE(becomes_readable(sleeper.driver.engine.event_fd()));
  sleeper.driver.engine.pump(-1);
  EXPECT_EQ(sleeper.kernel.last().page().aux_tail, sleeper.kernel.last().aux_size / 2);
}

TEST(PerfStream, BringsSchedulingMarksWhileTheThreadRuns) {
  Sleeper sleeper{SourceKind::kLbr};
  sleeper.record(true);
  ASSERT_TRUE(sleeper.driver.engine.mark_switches(sleeper.id));
  ASSERT_TRUE(sleeper.driver.engine.mark_switches(sleeper.id));  // A second call has no effect.
  ASSERT_EQ(sleeper.kernel.open_events(), 2U);
  EXPECT_TRUE(sleeper.driver.engine.is_running(sleeper.id));
  test::SimulatedEvent& switches = sleeper.kernel.event(1);
  EXPECT_EQ(switches.attr.context_switch, 1U);
  EXPECT_FALSE(switches.overwrite);
  // Fills the ring more than once; the engine reads it meanwhile.
  std::uint64_t time = 0;
  std::uint64_t branches = 0;
  const std::uint64_t rounds = 3 * switches.ring_bytes() / 64 / 1000;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    sleeper.sample();
    ++branches;
    for (int i = 0; i < 1000; ++i) {
      switches.switched(true, ++time, i % 2 == 0);
      switches.switched(false, ++time);
    }
    ASSERT_TRUE(sleeper.pump_until([&] { return sleeper.counter.marks.size() == time; }));
    ASSERT_EQ(sleeper.counter.branches, branches);
    // Each mark follows the branches that came before it.
    ASSERT_EQ(sleeper.counter.marks.back().first, branches);
  }
  for (std::size_t i = 0; i < sleeper.counter.marks.size(); ++i) {
    ASSERT_EQ(sleeper.counter.marks[i].second.time_ns, i + 1);
  }
  EXPECT_EQ(sleeper.trace().marks_lost(), 0U);
  EXPECT_EQ(sleeper.counter.marks[0].second.kind, decoder::MarkKind::kPreempted);
  EXPECT_EQ(sleeper.counter.marks[2].second.kind, decoder::MarkKind::kDeparts);
  // Marks that find no room are counted, and no branch is lost.
  const std::uint64_t room = switches.ring_bytes() / 64;
  for (std::uint64_t i = 0; i < room + 3; ++i) {
    switches.switched(true, ++time);
    switches.switched(false, ++time);
  }
  sleeper.sample();
  const std::size_t before = sleeper.counter.marks.size();
  ASSERT_TRUE(sleeper.pump_until([&] { return sleeper.counter.marks.size() != before; }));
  EXPECT_NE(sleeper.trace().marks_lost(), 0U);
  switches.switched(true, ++time);
  ASSERT_TRUE(sleeper.pump_until(
      [&] { return sleeper.counter.marks.size() + sleeper.trace().marks_lost() == time; }));
  EXPECT_EQ(sleeper.counter.branches, branches + 1);
  EXPECT_EQ(sleeper.counter.marks.size() + sleeper.trace().marks_lost(), time);
}

TEST(PerfStream, MarksOfSoftwareAreReadWhileTheThreadRuns) {
  Sleeper sleeper{SourceKind::kStep};
  sleeper.record(false);
  EXPECT_LT(sleeper.trace().wake_fd(), 0);
  ASSERT_TRUE(sleeper.driver.engine.mark_switches(sleeper.id));
  EXPECT_GE(sleeper.trace().wake_fd(), 0);
  sleeper.driver.resume_all();
  test::SimulatedEvent& switches = sleeper.kernel.event(0);
  const std::uint64_t some = switches.ring_bytes() / 64;
  for (std::uint64_t i = 1; i <= some; ++i) switches.switched(i % 2 != 0, i);
  const UniqueFd input{::eventfd(1, EFD_CLOEXEC)};
  constexpr int kMany = 1'000'000;
  for (int i = 0; i < kMany && sleeper.counter.marks.size() != some; ++i) {
    sleeper.driver.engine.pump(input.get());
  }
  EXPECT_EQ(sleeper.counter.marks.size(), some);
}

TEST(PerfStream, RecordsNewThreadsBeforeTheyRun) {
  test::SimulatedPerf kernel;
  EngineDriver driver{SourceKind::kLbr};
  std::size_t told = 0;
  driver.engine.set_on_recorded_unasked([&](Thread& thread) {
    ++told;
    EXPECT_TRUE(thread.stopped());
    EXPECT_TRUE(kernel.last().enabled);
    EXPECT_TRUE(thread.trace()->wanted());
    EXPECT_FALSE(thread.trace()->asked_for());
  });
  const pid_t pid = driver.launch("threads");
  ASSERT_TRUE(driver.engine.enable_trace(
      {pid, pid}, {.format = TraceFormat::kBts, .size_bytes = 65536, .perf = &kernel}));
  const auto end = driver.run();
  ASSERT_TRUE(end);
  EXPECT_EQ(end->kind, StopKind::kProcessExited);
  EXPECT_EQ(told, 4U);
  EXPECT_EQ(kernel.opened.size(), 5U);
  EXPECT_EQ(kernel.open_events(), 0U);
}

TEST(PerfStream, AThreadWithoutADescriptorIsNamedAndOthersGoOn) {
  Sleeper sleeper{SourceKind::kLbr};
  sleeper.record(true);
  LaunchSpec spec;
  spec.program = "/bin/sleep";
  spec.arguments = {"1000"};
  spec.through_shell = false;
  const auto other = sleeper.driver.engine.launch(spec);
  ASSERT_TRUE(other);
  sleeper.kernel.open_rule = [](const perf_event_attr&) { return EMFILE; };
  const auto refused = sleeper.driver.engine.enable_trace(
      {*other, *other},
      {.format = TraceFormat::kBts, .size_bytes = 65536, .perf = &sleeper.kernel});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code.value(), EMFILE);
  EXPECT_EQ(refused.error().detail, static_cast<std::uint64_t>(*other));
  EXPECT_FALSE(sleeper.driver.engine.find({*other, *other})->trace());
  sleeper.sample();
  EXPECT_TRUE(sleeper.pump_until([&] { return sleeper.counter.branches == 1; }));
  EXPECT_TRUE(sleeper.driver.engine.kill(*other));
}

TEST(PerfStream, ManyThreadsShareWhatIsLocked) {
  EXPECT_EQ(stream_buffer_size(1), 4U << 20U);
  EXPECT_EQ(stream_buffer_size(0), 4U << 20U);
  EXPECT_EQ(stream_buffer_size(100), 512U << 10U);
  EXPECT_EQ(stream_buffer_size(1000), 128U << 10U);
  EXPECT_EQ(stream_buffer_size(1, 4U << 20U), 2U << 20U);
  EXPECT_EQ(stream_buffer_size(1000, 9U << 20U), 4096U);
}

TEST(PerfStream, TakesNoMoreThanAShareOfWhatMayBeLocked) {
  for (const bool every_record : {false, true}) {
    Sleeper sleeper{SourceKind::kPerfPt};
    sleeper.kernel.locked_budget = (1U << 20U) + (1U << 19U);
    sleeper.record(every_record, TraceFormat::kPt);
    EXPECT_EQ(sleeper.kernel.last().aux_size, 512U << 10U);
    ASSERT_TRUE(sleeper.driver.engine.stream_trace(sleeper.id));
    EXPECT_EQ(sleeper.kernel.last().aux_size, 512U << 10U);
    EXPECT_LE(sleeper.kernel.locked(), (1U << 20U) - (1U << 18U));
  }
}

TEST(PerfStream, OfSoftwareNeedsNothing) {
  Sleeper sleeper{SourceKind::kStep};
  EXPECT_TRUE(sleeper.driver.engine.stream_trace(sleeper.id).error().is(TraceErrc::kNotEnabled));
  sleeper.record(true);
  EXPECT_TRUE(sleeper.driver.engine.stream_trace(sleeper.id));
}

TEST(WakeUps, NameTheThreadsWhoseBuffersWantToBeRead) {
  const UniqueFd child{::eventfd(0, EFD_CLOEXEC)};
  const UniqueFd buffer{::eventfd(1, EFD_CLOEXEC)};
  WakeUps wake_ups{child.get()};
  EXPECT_TRUE(wake_ups.take().empty());
  wake_ups.watch(7, buffer.get());
  ASSERT_TRUE(becomes_readable(wake_ups.fd()));
  EXPECT_EQ(wake_ups.take(), (std::vector<pid_t>{7}));
  wake_ups.forget(7);
  EXPECT_TRUE(wake_ups.take().empty());
}

TEST(WakeUps, ForgetWhoseBufferIsDead) {
  const UniqueFd child{::eventfd(0, EFD_CLOEXEC)};
  int ends[2]{};
  ASSERT_EQ(::pipe(ends), 0);
  const UniqueFd reading{ends[0]};
  WakeUps wake_ups{child.get()};
  wake_ups.watch(7, reading.get());
  ::close(ends[1]);
  EXPECT_EQ(wake_ups.take(), (std::vector<pid_t>{7}));
  pollfd waited{wake_ups.fd(), POLLIN, 0};
  EXPECT_EQ(::poll(&waited, 1, 0), 0);
  EXPECT_TRUE(wake_ups.take().empty());
}

}  // namespace
}  // namespace backtrail::tracee
