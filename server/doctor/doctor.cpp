// SPDX-License-Identifier: Apache-2.0
#include "server/doctor/doctor.hpp"

#include <algorithm>
#include <cstdio>
#include <vector>

#include <fmt/format.h>

#include "ptrace/os/debug_register_check.hpp"
#include "server/cli/help_text.hpp"
#include "server/doctor/source_check.hpp"

namespace backtrail::server {
namespace {

std::string_view yes_no(bool value) {
  return value ? "yes" : "no";
}

std::string number_or(const std::optional<int>& value, std::string_view absent) {
  return value ? std::to_string(*value) : std::string{absent};
}

std::string row(std::string_view name, std::string_view value) {
  return fmt::format("{:<10} {}\n", name, value);
}

std::string facts_rows(const tracee::MachineFacts& facts) {
  return row("CPU", fmt::format("{}, {}", facts.cpu_vendor, facts.cpu_model)) +
         row("flags", fmt::format("intel_pt {}, bts {}, dtes64 {}, hypervisor {}",
                                  yes_no(facts.flag_intel_pt), yes_no(facts.flag_bts),
                                  yes_no(facts.flag_dtes64), yes_no(facts.hypervisor))) +
         row("kernel", facts.kernel) + row("container", facts.container.value_or("none detected")) +
         row("perf", fmt::format("perf_event_paranoid {}, CAP_PERFMON {}",
                                 number_or(facts.perf_event_paranoid, "absent"),
                                 yes_no(facts.capability_perfmon))) +
         row("ptrace", fmt::format("ptrace_scope {}, CAP_SYS_PTRACE {}, seccomp {}",
                                   number_or(facts.ptrace_scope, "absent"),
                                   yes_no(facts.capability_ptrace), facts.seccomp)) +
         row("watching", facts.debug_registers
                             ? "the debug registers trap"
                             : "the debug registers do not trap: hardware breakpoints and "
                               "watchpoints are refused; the hypervisor could pass them on");
}

/// Returns one line: the finding, and who could change it.
std::string source_row(const tracee::SourceProbe& source) {
  return fmt::format("{:<10} {:<6} {}\n", to_string(source.kind), yes_no(source.available),
                     source.words());
}

/// Prints a line for each source when its result is known. @return Whether all agree with step.
bool compare_sources(std::span<const tracee::SourceProbe> sources) {
  const auto step = record_known_program(tracee::SourceKind::kStep);
  if (!step) {
    fmt::print("\nnot compared: {}\n", step.error().message());
    return false;
  }
  fmt::print("\n{:<10} {:>9}  {}\n", "source", "time", "a known program, compared with step");
  const auto print_row = [](tracee::SourceKind kind, std::chrono::nanoseconds time,
                            std::string_view words) {
    fmt::print("{:<10} {:>6.1f} ms  {}\n", to_string(kind),
               std::chrono::duration<double, std::milli>{time}.count(), words);
    std::fflush(stdout);
  };
  print_row(tracee::SourceKind::kStep, step->time,
            fmt::format("{} branches", step->records.size()));
  bool right = true;
  for (const tracee::SourceProbe& source : sources) {
    if (!source.available || source.kind == tracee::SourceKind::kStep) continue;
    const auto run = record_known_program(source.kind);
    const SourceCheck check = run ? compare_with_step(source.kind, step->records, run->records)
                                  : SourceCheck{false, run.error().message()};
    print_row(source.kind, run ? run->time : std::chrono::nanoseconds{}, check.words);
    right = right && check.equal;
  }
  return right;
}

}  // namespace

std::string doctor_report(const tracee::MachineFacts& facts,
                          std::span<const tracee::SourceProbe> sources,
                          const Result<std::chrono::nanoseconds>& step) {
  std::string text = backtrail_version() + "\n" + facts_rows(facts) + "\n";
  text += fmt::format("{:<10} {:<6} {}\n", "source", "works", "what was found");
  for (const tracee::SourceProbe& source : sources) text += source_row(source);
  const auto first = std::find_if(sources.begin(), sources.end(),
                                  [](const auto& source) { return source.taken_unasked(); });
  text += "\n" + row("auto takes", first == sources.end() ? "none: no source works here"
                                                          : to_string(first->kind));
  if (step) {
    const double micro = std::chrono::duration<double, std::micro>{*step}.count();
    text += row("one step", fmt::format("{:.1f} us, {:.0f} instructions a second", micro,
                                        micro > 0 ? 1e6 / micro : 0.0));
  } else {
    text += row("one step", "not measured: " + step.error().message());
  }
  return text;
}

int run_doctor() {
  tracee::MachineFacts facts = tracee::read_machine_facts();
  facts.debug_registers = tracee::debug_registers_trap();
  const std::vector<tracee::SourceProbe> sources = tracee::probe_all_sources(facts);
  const std::string text = doctor_report(facts, sources, tracee::measure_step());
  std::fwrite(text.data(), 1, text.size(), stdout);
  std::fflush(stdout);
  const bool any =
      std::any_of(sources.begin(), sources.end(), [](const auto& s) { return s.available; });
  return any && compare_sources(sources) ? 0 : 1;
}

}  // namespace backtrail::server
