// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Which branch sources work on this machine, and why others do not. For `backtrail doctor` and for
/// choosing a source.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/pt/cpu_identity.hpp"
#include "ptrace/os/procfs.hpp"
#include "ptrace/perf/bts_trial.hpp"
#include "ptrace/source/source_kind.hpp"

namespace backtrail::tracee {

/// Facts about the machine that decide which sources work.
struct MachineFacts {
  std::string cpu_vendor;  ///< "GenuineIntel", "AuthenticAMD", ...
  std::string cpu_model;   ///< Model name for people.
  decoder::CpuIdentity cpu;
  bool flag_intel_pt = false;
  bool flag_bts = false;
  bool flag_dtes64 = false;
  bool hypervisor = false;
  std::string kernel;  ///< Kernel release.
  std::optional<std::string> container;
  std::optional<int> perf_event_paranoid;  ///< nullopt if the kernel has no perf.
  std::optional<int> ptrace_scope;         ///< nullopt without Yama.
  int seccomp = 0;                         ///< Value in /proc/self/status.
  bool capability_perfmon = false;         ///< CAP_PERFMON or CAP_SYS_ADMIN.
  bool capability_ptrace = false;
  bool debug_registers = true;  ///< Breakpoints in debug registers trap. True until checked.

  [[nodiscard]] bool intel() const { return cpu_vendor == "GenuineIntel"; }
};
[[nodiscard]] MachineFacts read_machine_facts(const ProcFs& proc = ProcFs{});
/// Returns the facts of this machine, read at the first call.
[[nodiscard]] const MachineFacts& this_machine();

/// Verdict about one source.
struct SourceProbe {
  SourceKind kind = SourceKind::kStep;
  bool available = false;   ///< The machine supports the source.
  bool only_asked = false;  ///< `auto` never selects it.
  std::string detail;       ///< One line: the finding, or why the source cannot work.
  std::string advice;       ///< How to change that, and who can; empty if nothing helps.
  int errno_value = 0;      ///< Errno of the failed attempt; 0 = none.

  [[nodiscard]] bool taken_unasked() const { return available && !only_asked; }
  /// Returns detail and advice in one line.
  [[nodiscard]] std::string words() const;
};

/// Judges a source from the result of perf_event_open. Pure.
/// @param open_errno  Errno of the attempt; 0 = the event opened.
/// @param intel_pt_type  The kernel has an intel_pt PMU.
[[nodiscard]] SourceProbe judge_source(SourceKind kind, const MachineFacts& facts, int open_errno,
                                       bool intel_pt_type);

/// Withdraws `available` from perf-bts if the trial showed that the kernel only samples. `out` must
/// say that perf-bts is available.
void judge_trial(BtsTrial trial, SourceProbe& out);
/// Tries the source on this thread or on a small child; leaves nothing running. kAuto: the first
/// source that needs no request.
[[nodiscard]] SourceProbe probe_source(SourceKind kind, const MachineFacts& facts);
/// Returns one line: why recording a thread with this source failed with `error`, and who could
/// change that.
[[nodiscard]] std::string why_not_recorded(SourceKind kind, const Error& error);
/// Probes every source, in order of preference.
[[nodiscard]] std::vector<SourceProbe> probe_all_sources(const MachineFacts& facts);

/// Measures a PTRACE_SINGLESTEP round trip on a small child: the mean of up to `steps` steps, in at
/// most about 200 ms. Error: the errno of the call that failed.
Result<std::chrono::nanoseconds> measure_step(unsigned steps = 1000);

}  // namespace backtrail::tracee
