// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/probe.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>

#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>

#include <fmt/format.h>

#include "ptrace/os/perf_event_open.hpp"
#include "ptrace/os/ptrace_request.hpp"
#include "ptrace/os/wait_status.hpp"
#include "ptrace/perf/perf_event.hpp"
#include "ptrace/perf/perf_holders.hpp"
#include "ptrace/perf/perf_kernel.hpp"

namespace backtrail::tracee {
namespace {

constexpr std::array kOrder{SourceKind::kPerfPt, SourceKind::kPerfBts, SourceKind::kCache,
                            SourceKind::kStep, SourceKind::kLbr};

constexpr const char* kOtherCpu = "only a machine with another CPU can do it";
constexpr const char* kPassOn = "the owner of the hypervisor can pass the CPU's unit on";

// lbr records only the last branches, which is not a full trace.
constexpr bool only_when_asked_for(SourceKind kind) {
  return kind == SourceKind::kLbr;
}

perf_event_attr user_only() {
  perf_event_attr out{};
  out.disabled = 1;
  out.exclude_kernel = 1;
  out.exclude_hv = 1;
  return out;
}

std::optional<std::uint32_t> pmu_type(const char* pmu) {
  std::ifstream file{fmt::format("/sys/bus/event_source/devices/{}/type", pmu)};
  std::uint32_t type = 0;
  if (!(file >> type)) return std::nullopt;
  return type;
}

// Opens the event and closes it at once. Returns the errno; 0 if it works.
int try_open(const perf_event_attr& attributes) {
  const auto event = perf_event_open(attributes, 0);
  return event ? 0 : event.error().code.value();
}

int try_pt() {
  const auto type = pmu_type("intel_pt");
  if (!type) return ENOENT;
  perf_event_attr attributes = user_only();
  attributes.type = *type;
  return try_open(attributes);
}

int open_bts() {
  perf_event_attr attributes = user_only();
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
  attributes.sample_period = 1;
  attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
  const int said = try_open(attributes);
  if (said == 0) return 0;
  // Try the intel_bts unit: some CPUs' drivers reject a period of 1, and some kernels have only one
  // of the two ways.
  const auto type = pmu_type("intel_bts");
  if (!type) return said;
  perf_event_attr by_area = user_only();
  by_area.type = *type;
  const int area_said = try_open(by_area);
  return area_said == 0 ? 0 : said;
}

int try_branch_stack() {
  perf_event_attr attributes = user_only();
  attributes.type = PERF_TYPE_HARDWARE;
  attributes.config = PERF_COUNT_HW_BRANCH_INSTRUCTIONS;
  attributes.sample_period = 100'003;
  attributes.sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_BRANCH_STACK;
  attributes.branch_sample_type = PERF_SAMPLE_BRANCH_USER | PERF_SAMPLE_BRANCH_ANY;
  if (const int refused = try_open(attributes); refused != EINVAL) return refused;
  // AMD's Zen 3 wants this event (LbrRecorder::open).
  attributes.type = PERF_TYPE_RAW;
  attributes.config = kAmdTakenBranches;
  return try_open(attributes);
}

std::string errno_name(int value) {
  const char* name = ::strerrorname_np(value);
  return name != nullptr ? name : fmt::format("errno {}", value);
}

// Explains why perf_event_open refused, and how to change that.
void explain_errno(const MachineFacts& facts, SourceProbe& out) {
  const std::string said = fmt::format("perf_event_open: {}", errno_name(out.errno_value));
  switch (out.errno_value) {
    case ENOENT:
      out.detail = facts.hypervisor
                       ? said + ": this virtual machine has no such performance monitoring unit"
                       : said + ": the kernel has no such performance monitoring unit";
      out.advice = facts.hypervisor ? kPassOn : "see the firmware's settings and the kernel's log";
      break;
    case EACCES:
      out.detail =
          said + (facts.perf_event_paranoid ? fmt::format(": kernel.perf_event_paranoid is {}",
                                                          *facts.perf_event_paranoid)
                                            : ": not permitted");
      out.advice = "root: sysctl kernel.perf_event_paranoid=1, or grant the capability PERFMON";
      break;
    case EPERM:
      out.detail = said + (facts.seccomp != 0 ? ": a seccomp filter forbids it" : ": forbidden");
      out.advice =
          "start the container with --cap-add=PERFMON and a seccomp profile that "
          "allows perf_event_open";
      break;
    case EBUSY:
      out.detail = said + ": the unit is in use" + perf_holders_text();
      out.advice = "end other users of branch tracing (perf, another debugger)";
      break;
    case ENOSYS:
      out.detail = said + ": this kernel or sandbox has no perf";
      out.advice = "a kernel with CONFIG_PERF_EVENTS";
      break;
    case EOPNOTSUPP:
    case EINVAL:
      out.detail = said + ": the CPU or the kernel's driver for it cannot do this";
      out.advice = facts.hypervisor ? kPassOn : kOtherCpu;
      break;
    default:
      out.detail = fmt::format("{} ({})", said, ::strerror(out.errno_value));
      break;
  }
}

// Returns the reason if the CPU itself lacks the feature, so that no setting helps; nullopt
// otherwise.
std::optional<std::string> cpu_obstacle(SourceKind kind, const MachineFacts& facts) {
  const std::string vendor = facts.cpu_vendor.empty() ? "unknown" : facts.cpu_vendor;
  if (kind == SourceKind::kPerfPt || kind == SourceKind::kPerfBts) {
    const char* what = kind == SourceKind::kPerfPt ? "Intel PT" : "BTS";
    if (!facts.intel())
      return fmt::format("{} is a feature of Intel CPUs; this one is {}", what, vendor);
  }
  if (facts.hypervisor) return std::nullopt;  // The flags show only what the hypervisor passes on.
  if (kind == SourceKind::kPerfPt && !facts.flag_intel_pt)
    return "the CPU has no Intel PT (no intel_pt in its flags)";
  if (kind == SourceKind::kPerfBts && !facts.flag_bts)
    return "the CPU has no BTS (no bts in its flags)";
  if (kind == SourceKind::kPerfBts && !facts.flag_dtes64)
    return "the CPU's BTS lacks the 64-bit debug store (no dtes64 in its flags)";
  return std::nullopt;
}

void judge_perf(const MachineFacts& facts, bool intel_pt_type, SourceProbe& out) {
  if (const auto obstacle = cpu_obstacle(out.kind, facts)) {
    out.detail = *obstacle;
    out.advice = kOtherCpu;
    return;
  }
  if (out.kind == SourceKind::kPerfPt && !intel_pt_type) {
    out.detail = "the kernel offers no intel_pt unit (/sys/bus/event_source/devices/intel_pt)";
    out.advice = facts.hypervisor ? "the owner of the hypervisor can pass Intel PT on"
                                  : "free Intel PT in the firmware; see \"intel_pt\" in the "
                                    "kernel's log";
    return;
  }
  if (out.errno_value != 0) {
    explain_errno(facts, out);
    return;
  }
  // Other drivers open this event as a plain counter, so success alone does not prove BTS.
  if (out.kind == SourceKind::kPerfBts && !(facts.flag_bts && facts.flag_dtes64)) {
    out.detail = "perf_event_open succeeds, but the CPU's flags lack bts or dtes64";
    out.advice = kPassOn;
    return;
  }
  out.available = true;
  out.detail = "perf_event_open succeeds";
}

// Limits the measurement on a busy machine, which then makes fewer steps.
constexpr std::chrono::milliseconds kLongestMeasurement{200};

// A child that spins, for stepping: no system call, no signal.
[[noreturn]] void spin() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  volatile unsigned counter = 0;
  while (true) counter = counter + 1;
}

// Waits for the stop of a child that was told to stop or step. Error kTraceeGone if it ended
// instead.
Result<void> await_stop(pid_t pid) {
  int raw = 0;
  pid_t got = 0;
  do {
    got = ::waitpid(pid, &raw, __WALL);
  } while (got < 0 && errno == EINTR);
  if (got < 0) return fail_errno("waitpid", static_cast<unsigned>(pid));
  if (!WaitStatus::decode(raw).stopped())
    return fail(TraceErrc::kTraceeGone, "step a child", static_cast<unsigned>(pid));
  return {};
}

Result<std::chrono::nanoseconds> step_child(pid_t pid, unsigned steps) {
  BT_CHECKED(request::seize(pid, PTRACE_O_EXITKILL));
  BT_CHECKED(request::interrupt(pid));
  BT_CHECKED(await_stop(pid));
  const auto begin = std::chrono::steady_clock::now();
  std::chrono::nanoseconds spent{0};
  unsigned done = 0;
  while (done < steps && (done == 0 || spent < kLongestMeasurement)) {
    BT_CHECKED(request::step(pid));
    BT_CHECKED(await_stop(pid));
    ++done;
    spent = std::chrono::steady_clock::now() - begin;
  }
  return spent / std::max(done, 1U);
}

// Sources that trace in software need only ptrace.
void judge_ptrace(const MachineFacts& facts, const Result<std::chrono::nanoseconds>& time,
                  SourceProbe& out) {
  if (time) {
    out.available = true;
    out.detail = out.kind == SourceKind::kCache
                     ? "ptrace works; translated code logs its branches"
                     : fmt::format("ptrace works; one step takes {:.1f} us",
                                   static_cast<double>(time->count()) / 1000.0);
    return;
  }
  out.errno_value = time.error().code.value();
  out.detail = time.error().message();
  out.advice = facts.container ? "start the container with --cap-add=SYS_PTRACE, or a seccomp "
                                 "profile that allows ptrace"
                               : "root: see kernel.yama.ptrace_scope and seccomp filters";
  if (out.errno_value == ENOSYS) {
    out.advice +=
        "; emulators of a CPU (qemu-user, Rosetta) have no ptrace: only a machine with this "
        "CPU can do it";
  }
}

}  // namespace

std::string SourceProbe::words() const {
  return advice.empty() ? detail : fmt::format("{}; {}", detail, advice);
}

void judge_trial(BtsTrial trial, SourceProbe& out) {
  // If the trial's event did not open, the intel_bts unit did, which needs no trial.
  if (trial != BtsTrial::kSampler) return;
  out.available = false;
  out.detail = "perf_event_open succeeds, but not every iteration of a known loop was recorded";
  out.advice = "the kernel's driver treats the request as a plain sampler";
}

SourceProbe judge_source(SourceKind kind, const MachineFacts& facts, int open_errno,
                         bool intel_pt_type) {
  SourceProbe out;
  out.kind = kind;
  out.only_asked = only_when_asked_for(kind);
  out.errno_value = open_errno;
  judge_perf(facts, intel_pt_type, out);
  return out;
}

SourceProbe probe_source(SourceKind kind, const MachineFacts& facts) {
  switch (kind) {
    case SourceKind::kPerfPt:
      return judge_source(kind, facts, try_pt(), pmu_type("intel_pt").has_value());
    case SourceKind::kPerfBts: {
      SourceProbe probe = judge_source(kind, facts, open_bts(), false);
      if (probe.available) judge_trial(try_bts(system_perf_kernel()), probe);
      return probe;
    }
    case SourceKind::kLbr:
      return judge_source(kind, facts, try_branch_stack(), false);
    case SourceKind::kCache:
    case SourceKind::kStep:
      break;
    case SourceKind::kAuto:
      for (const SourceKind candidate : kOrder)
        if (SourceProbe probe = probe_source(candidate, facts); probe.taken_unasked()) return probe;
      return probe_source(SourceKind::kStep, facts);
  }
  SourceProbe out;
  out.kind = kind;
  judge_ptrace(facts, measure_step(), out);
  return out;
}

std::string why_not_recorded(SourceKind kind, const Error& error) {
  const bool of_the_thread = error.is(TraceErrc::kTraceeGone) || error.is(TraceErrc::kNotStopped);
  if (!is_hardware(kind) || of_the_thread) return error.message();
  const SourceProbe probe = probe_source(kind, this_machine());
  const bool of_the_kernel = error.code.category() == std::system_category();
  return fmt::format("{}: {}", to_string(kind),
                     !probe.available ? probe.words()
                     : of_the_kernel  ? explain_perf_error(error)
                                      : error.message());
}

std::vector<SourceProbe> probe_all_sources(const MachineFacts& facts) {
  std::vector<SourceProbe> out;
  out.reserve(kOrder.size());
  for (const SourceKind kind : kOrder) out.push_back(probe_source(kind, facts));
  return out;
}

Result<std::chrono::nanoseconds> measure_step(unsigned steps) {
  const pid_t pid = ::fork();
  if (pid < 0) return fail_errno("fork");
  if (pid == 0) spin();
  auto time = step_child(pid, steps);
  ::kill(pid, SIGKILL);
  while (::waitpid(pid, nullptr, __WALL) >= 0 || errno == EINTR) {
  }
  return time;
}

}  // namespace backtrail::tracee
