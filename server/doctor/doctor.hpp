#pragma once
/// @file
/// `backtrail doctor`: what this machine can do, as a table to paste into a bug report.

#include <chrono>
#include <span>
#include <string>

#include "ptrace/source/probe.hpp"

namespace backtrail::server {

/// @param step  Time of one single-step round trip, or why it could not be measured.
[[nodiscard]] std::string doctor_report(const tracee::MachineFacts& facts,
                                        std::span<const tracee::SourceProbe> sources,
                                        const Result<std::chrono::nanoseconds>& step);

/// Probes, then records the known program with every source that works and compares it with step;
/// prints to stdout. @return 0, or 1 when no source works at all or one is not right.
[[nodiscard]] int run_doctor();

}  // namespace backtrail::server
