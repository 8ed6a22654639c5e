#pragma once
/// @file
/// Which branch sources could work on this machine, and if not, why not. For `backtrail doctor`
/// and for choosing a source.

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

/// Facts of the machine that decide about sources.
struct MachineFacts {
  std::string cpu_vendor;  ///< "GenuineIntel", "AuthenticAMD", ...
  std::string cpu_model;   ///< The model name for people.
  decoder::CpuIdentity cpu;
  bool flag_intel_pt = false;
  bool flag_bts = false;
  bool flag_dtes64 = false;
  bool hypervisor = false;
  std::string kernel;  ///< Release.
  std::optional<std::string> container;
  std::optional<int> perf_event_paranoid;  ///< Absent without perf in the kernel.
  std::optional<int> ptrace_scope;         ///< Absent without Yama.
  int seccomp = 0;                         ///< As /proc/self/status has it.
  bool capability_perfmon = false;         ///< CAP_PERFMON or CAP_SYS_ADMIN.
  bool capability_ptrace = false;
  bool debug_registers = true;  ///< Those of the CPU trap.

  [[nodiscard]] bool intel() const { return cpu_vendor == "GenuineIntel"; }
};
[[nodiscard]] MachineFacts read_machine_facts(const ProcFs& proc = ProcFs{});
/// Those of this machine, read once.
[[nodiscard]] const MachineFacts& this_machine();

/// The verdict about one source.
struct SourceProbe {
  SourceKind kind = SourceKind::kStep;
  bool available = false;   ///< The machine can do it.
  bool only_asked = false;  ///< `auto` never takes it.
  std::string detail;       ///< One line: what was found, or why it cannot work.
  std::string advice;       ///< Who could change it, and how; empty when nothing is to be done.
  int errno_value = 0;      ///< Of the attempt that failed; 0 = none.

  [[nodiscard]] bool taken_unasked() const { return available && !only_asked; }
  /// One line: both of them.
  [[nodiscard]] std::string words() const;
};

/// What the attempt of perf_event_open for a source said; 0 = it opened.
/// Pure: the words for it, given the machine. `intel_pt_type` is whether the intel_pt PMU exists.
[[nodiscard]] SourceProbe judge_source(SourceKind kind, const MachineFacts& facts, int open_errno,
                                       bool intel_pt_type);

/// What a trial of the event says of perf-bts, of which the rest says that it is available.
void judge_trial(BtsTrial trial, SourceProbe& out);
/// Tries the source out on this thread or a small child; leaves nothing behind. kAuto = the first
/// one that is taken unasked.
[[nodiscard]] SourceProbe probe_source(SourceKind kind, const MachineFacts& facts);
/// One line: why a thread could not be recorded by this source, which has failed with the error,
/// and who could change that.
[[nodiscard]] std::string why_not_recorded(SourceKind kind, const Error& error);
/// Every source in the order of preference.
[[nodiscard]] std::vector<SourceProbe> probe_all_sources(const MachineFacts& facts);

/// Time of one PTRACE_SINGLESTEP round trip, measured on a small child by up to `steps` of them,
/// for a fraction of a second at most. The errno of what failed.
Result<std::chrono::nanoseconds> measure_step(unsigned steps = 1000);

}  // namespace backtrail::tracee
