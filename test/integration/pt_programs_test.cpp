// SPDX-License-Identifier: Apache-2.0
// Records real programs by single steps and encodes the records as Intel PT: libipt must read
// exactly the stepped instructions of each thread.

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <ostream>
#include <set>
#include <vector>

#include <gtest/gtest.h>

#include "decoder/pt/pt_decoder.hpp"
#include "engine_driver.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/trace/thread_trace.hpp"
#include "ptrace/tracee/link_map.hpp"
#include "test/support/effort.hpp"
#include "test/support/ipt_oracle.hpp"
#include "test/support/machine.hpp"

namespace backtrail::tracee {
namespace {

/// Number of steps, which sets the test's duration. BT_PT_STEPS overrides it, for runs by hand.
std::size_t step_limit(std::size_t usual) {
  const char* wish = std::getenv("BT_PT_STEPS");
  if (wish != nullptr) return std::strtoul(wish, nullptr, 10);
  return test::kSanitized ? usual / 3 : usual;
}

struct Program {
  const char* name;
  std::vector<std::string> words;  ///< Program (an inferior if it has no slash) and arguments.
  std::size_t steps = 25'000;
  bool from_start =
      false;  ///< Include the dynamic linker's work, which differs little between programs.
};
void PrintTo(const Program& program, std::ostream* out) {
  *out << program.name;
}

/// Steps a program, with every thread recorded from its creation.
class SteppedProgram {
 public:
  explicit SteppedProgram(const Program& program) {
    LaunchSpec spec;
    spec.program = program.words.front();
    if (spec.program.find('/') == std::string::npos) {
      spec.program = std::string{BT_INFERIOR_DIR} + "/" + spec.program;
    }
    spec.arguments.assign(program.words.begin() + 1, program.words.end());
    spec.through_shell = false;
    spec.environment = {"PATH=/usr/bin:/bin", "LC_ALL=C"};
    Engine& engine = driver_.engine;
    engine.set_non_stop(true);
    engine.set_reported({.threads = true});
    const auto pid = engine.launch(spec);
    if (!pid) {
      ADD_FAILURE() << pid.error().message();
      return;
    }
    if (!program.from_start) run_to_entry(*pid);
    record({*pid, *pid});
    step({*pid, *pid});
  }

  /// Runs until the program is about to end or has made `limit` steps.
  void run(std::size_t limit) {
    while (steps_ < limit) {
      const auto event = driver_.await();
      ASSERT_TRUE(event) << "no event";
      if (event->kind == StopKind::kProcessExited || event->kind == StopKind::kProcessSignalled) {
        return;
      }
      if (event->kind == StopKind::kThreadExited) continue;
      if (event->kind == StopKind::kThreadCreated) record(event->thread);
      if (event->kind == StopKind::kStep) ++steps_;
      note(event->thread);
      // The end of a thread would remove its trace.
      if (judged_.contains(event->thread.tid)) continue;
      if (about_to_end(event->thread)) {
        judge(event->thread);
        if (judged_.size() == instructions_.size()) return;
      }
      step(event->thread, event->kind == StopKind::kSignal ? event->signal : 0);
    }
    driver_.engine.stop_all();
    for (const auto& [tid, list] : instructions_) {
      Thread* thread = thread_of(tid);
      if (thread == nullptr || judged_.contains(tid)) continue;
      note(thread->id());  // its last step was not awaited
      judge(thread->id());
    }
  }

  [[nodiscard]] std::size_t steps() const { return steps_; }
  [[nodiscard]] std::size_t judged() const { return judged_.size(); }

 private:
  void run_to_entry(pid_t pid) {
    Engine& engine = driver_.engine;
    const auto auxv = ProcFs{}.auxv(pid);
    ASSERT_TRUE(auxv);
    const unsigned pointer_bytes = engine.find(pid)->isa() == arch::Isa::kAmd64 ? 8 : 4;
    const BreakpointSpec entry{.kind = BreakpointKind::kSoftware,
                               .address = parse_auxv(*auxv, pointer_bytes).entry};
    ASSERT_TRUE(engine.insert(pid, entry));
    driver_.resume({pid, pid}, {});
    const auto event = driver_.await();
    ASSERT_TRUE(event);
    ASSERT_EQ(event->kind, StopKind::kSoftwareBreakpoint);
    ASSERT_TRUE(engine.remove(pid, entry));
  }

  void record(ThreadId id) {
    ASSERT_TRUE(
        driver_.engine.enable_trace(id, {.format = TraceFormat::kPt, .size_bytes = 0xffffffff}));
    const auto pc = driver_.engine.find(id)->pc();
    ASSERT_TRUE(pc);
    instructions_[id.tid];
    at_[id.tid] = *pc;
  }

  /// Notes the instruction at `from`. After CPUID it also notes the following one if that has run:
  /// a hypervisor that emulates CPUID steps over both.
  void add(ThreadId id, TraceeAddr from, TraceeAddr now) {
    std::vector<std::uint64_t>& list = instructions_[id.tid];
    list.push_back(from.value());
    constexpr std::array<std::uint8_t, 2> kCpuid{0x0f, 0xa2};
    std::array<std::uint8_t, kCpuid.size()> bytes{};
    (void)thread_of(id.tid)->process().read_code(from, bytes);
    const TraceeAddr next = from + kCpuid.size();
    if (bytes == kCpuid && now != next) list.push_back(next.value());
  }

  void step(ThreadId id, int signal = 0) {
    driver_.resume(id, {.kind = ResumeKind::kStep, .signal = signal});
  }

  Thread* thread_of(pid_t tid) {
    for (const Process* process : driver_.engine.processes()) {
      for (const auto& thread : process->threads()) {
        if (thread->tid() == tid) return thread.get();
      }
    }
    return nullptr;
  }

  /// Notes the instruction at the last stop if the pc has moved.
  void note(ThreadId id) {
    Thread* thread = driver_.engine.find(id);
    if (thread == nullptr || !thread->stopped()) return;
    const auto pc = thread->pc();
    if (!pc || *pc == at_[id.tid]) return;
    // Entering a signal handler executes no instruction.
    const bool handler_entered = thread->status().kind == WaitKind::kStopped &&
                                 thread->status().signal == SIGTRAP &&
                                 thread->trap_cause() == TrapCause::kHandlerEntry;
    if (!handler_entered) add(id, at_[id.tid], *pc);
    at_[id.tid] = *pc;
  }

  /// Returns true if the next instruction is the system call exit or exit_group.
  bool about_to_end(ThreadId id) {
    Thread* thread = driver_.engine.find(id);
    if (thread == nullptr || !thread->stopped()) return false;
    const auto regs = thread->user_regs();
    if (!regs) return false;
    Process& process = thread->process();
    const bool narrow = process.isa() == arch::Isa::kI386;
    const std::uint64_t number = (*regs)[arch::x86::UserReg::kRax];
    if (narrow ? number != 1 && number != 252 : number != 60 && number != 231) return false;
    return process.insns().at(regs->pc()).kind == arch::InsnKind::kSystemCall;
  }

  void judge(ThreadId id) {
    Thread* thread = driver_.engine.find(id);
    ASSERT_NE(thread, nullptr);
    if (!thread->stopped()) return;  // the thread sleeps in a system call
    thread->trace()->source().flush();
    const auto pc = thread->pc();
    ASSERT_TRUE(pc);
    const std::vector<std::uint8_t> packets = thread->trace()->pt()->read_all(*pc);
    const auto items = test::decode_ipt(packets, thread->process());
    const std::vector<std::uint64_t>& stepped = instructions_[id.tid];
    std::size_t at = 0;
    for (const auto& item : items) {
      ASSERT_EQ(item.kind, test::IptItem::Kind::kInsn) << "item " << at << " of " << id.tid;
      ASSERT_LT(at, stepped.size()) << "libipt sees more than was executed";
      ASSERT_EQ(item.address, stepped[at]) << "instruction " << at << " of thread " << id.tid;
      ++at;
    }
    ASSERT_EQ(at, stepped.size()) << "libipt sees less than was executed";
    compare_decoders(packets, thread->process());
    judged_.insert(id.tid);
    weigh(packets.size(), stepped, thread->process());
  }

  /// backtrail's decoder agrees with libipt and does not fall back on it.
  static void compare_decoders(std::span<const std::uint8_t> packets, Process& process) {
    decoder::PtDecoder ours{process.insns()};
    decoder::PtDecoder libipt{process.insns()};
    libipt.use_libipt_alone();
    std::vector<decoder::Record> by_us;
    std::vector<decoder::Record> by_libipt;
    EXPECT_TRUE(ours.decode(packets, by_us));
    EXPECT_TRUE(libipt.decode(packets, by_libipt));
    EXPECT_EQ(ours.times_helped(), 0U);
    const auto [a, b] =
        std::mismatch(by_us.begin(), by_us.end(), by_libipt.begin(), by_libipt.end());
    EXPECT_TRUE(a == by_us.end() && b == by_libipt.end())
        << "record " << a - by_us.begin() << " of " << by_us.size() << " and " << by_libipt.size();
  }

  /// Limits the bytes for each taken branch, its share of branches not taken included.
  static void weigh(std::size_t bytes, const std::vector<std::uint64_t>& stepped,
                    Process& process) {
    std::size_t taken = 0;
    for (std::size_t i = 1; i < stepped.size(); ++i) {
      const TraceeAddr address{stepped[i - 1]};
      if (TraceeAddr{stepped[i]} != address + process.insns().at(address).length) ++taken;
    }
    constexpr std::size_t kEnough = 1000;
    if (taken < kEnough) return;
    const double each = static_cast<double>(bytes) / static_cast<double>(taken);
    std::printf("%zu taken branches, %.2f bytes each\n", taken, each);
    EXPECT_LE(each, 1.5);
  }

  EngineDriver driver_;
  std::map<pid_t, std::vector<std::uint64_t>> instructions_;
  std::map<pid_t, TraceeAddr> at_;
  std::set<pid_t> judged_;
  std::size_t steps_ = 0;
};

class PtOfPrograms : public testing::TestWithParam<Program> {};

TEST_P(PtOfPrograms, IsWhatWasStepped) {
  const std::string& file = GetParam().words.front();
  if (file.find('/') != std::string::npos && !std::filesystem::exists(file)) {
    GTEST_SKIP() << file << " is not installed";
  }
  if (!test::can_run_inferior(std::string{BT_INFERIOR_DIR} + "/" + file))
    GTEST_SKIP() << test::kNo32Bits;
  SteppedProgram program{GetParam()};
  program.run(step_limit(GetParam().steps));
  EXPECT_GT(program.judged(), 0U);
  EXPECT_GT(program.steps(), 50U);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, PtOfPrograms,
    testing::ValuesIn(test::every(
        2, std::vector{Program{"True", {"/bin/true"}, 200'000, true},
                       Program{"Python", {"/usr/bin/python3", "-S", "-c", "0"}, 50'000},
                       Program{"Exceptions", {"throws"}, 90'000},
                       Program{"FourThreads", {"threads_no_pie"}, 40'000},
                       Program{"Signals", {"signals"}}, Program{"Longjmp", {"jumps"}},
                       Program{"Fork", {"forks", "fork"}}, Program{"Static", {"calls_static"}},
                       Program{"Shell", {"/bin/sh", "-c", "exit 3"}},
                       Program{"Perl", {"/usr/bin/perl", "-e", "1"}},
                       Program{"Git", {"/usr/bin/git", "--version"}},
                       Program{"Gzip", {"/bin/gzip", "--version"}},
                       Program{"List", {"/bin/ls", "/"}}, Program{"I386", {"calls_i386"}}})),
    [](const auto& instance) { return std::string{instance.param.name}; });

}  // namespace
}  // namespace backtrail::tracee
