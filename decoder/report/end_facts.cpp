// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/end_facts.hpp"

#include <cstdlib>
#include <span>

#include <fmt/format.h>

#include "decoder/report/caught_signals.hpp"
#include "decoder/report/clean_text.hpp"

namespace backtrail::decoder {
namespace {

SignalText signal_of(const CoreFile& core) {
  const CoreThread& died = core.threads().front();
  std::span<const std::uint8_t> siginfo;
  if (died.siginfo) siginfo = *died.siginfo;
  return signal_text(died.signal, siginfo, core.isa(), died.user.pc(), died.user.sp());
}

}  // namespace

EndFacts::EndFacts(const CoreFile& core) : core_{core}, signal_{signal_of(core)} {
  const std::string tid = fact("report-thread");
  const std::string number = fact("report-record");
  if (tid.empty() || number.empty()) return;
  reported_ = {static_cast<std::uint32_t>(std::strtoul(tid.c_str(), nullptr, 10)),
               std::strtoull(number.c_str(), nullptr, 10)};
}

std::string EndFacts::fact(const char* name) const {
  const auto found = core_.about().find(name);
  return found == core_.about().end() ? std::string{} : printable(found->second);
}

void EndFacts::tell(Report& report) const {
  const auto about = [this](const char* name, const std::string& otherwise) {
    const auto found = core_.about().find(name);
    return found == core_.about().end() ? otherwise : found->second;
  };
  report.program = core_.process().name;
  report.pid = core_.process().pid;
  report.command = about("command", core_.process().arguments);
  report.run = about("run", report.run);
  report.signal = core_.threads().front().signal;
  report.signal_name = signal_name(report.signal);
  report.cause = signal_.words;
  report.has_address = signal_.address.has_value();
  report.address = signal_.address.value_or(TraceeAddr{});
  report.ending = ending();
}

/// Returns the recorder's account of the end; empty if a signal ended the program.
std::string EndFacts::ending() const {
  const std::string reason = fact("reason");
  if (reason == "exit") return "exited with status " + fact("exit-status");
  if (reason == "sanitizer") {
    return "ended after a sanitizer report, with status " + fact("exit-status");
  }
  if (reason == "leak-check") {
    return "failed its leak check (the file was saved before the check)";
  }
  if (reason == "timeout") return "was stopped at its time limit";
  if (reason == "terminated") {
    return fmt::format("was terminated: the recorder received {}",
                       signal_name(core_.threads().front().signal));
  }
  return {};
}

std::string EndFacts::word() const {
  std::string reason = fact("reason");
  if (reason == "exit") return "exit " + fact("exit-status");
  if (!reason.empty() && reason != "signal") return reason;
  return signal_name(core_.threads().front().signal);
}

void EndFacts::add_report_notes(std::vector<std::string>& notes) const {
  const std::string count = fact("reports");
  if (!reported_ || count.empty()) return;
  if (count != "1") {
    notes.push_back(fmt::format("{} sanitizer reports began; this report covers number {}", count,
                                fact("report")));
  }
  if (const std::string left_out = fact("report-left-out"); !left_out.empty()) {
    notes.push_back(
        fmt::format("{} branches of the sanitizer's reporting code were left out", left_out));
  }
}

std::optional<ReportSignal> EndFacts::first_signal(const ReportThread& died) const {
  if (!died.died || !died.interrupted) return std::nullopt;
  // If the interrupted instruction faults again, the last signal states the cause itself.
  if (died.interrupted->returned && !was_sent()) return std::nullopt;
  const auto facts = core_.about().find("caught");
  if (facts == core_.about().end()) return std::nullopt;
  std::optional<ReportSignal> out;
  for (const CaughtSignal& caught : parse_caught(facts->second, core_.isa())) {
    if (caught.pc != died.interrupted->place.address) continue;
    const SignalText text =
        signal_text(caught.signal, caught.info, core_.isa(), caught.pc, TraceeAddr{});
    out = ReportSignal{caught.signal, signal_name(caught.signal), text.words, text.address};
  }
  return out;
}

}  // namespace backtrail::decoder
