// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail doctor`: a table of this machine's abilities, to paste into a bug report.

#include <chrono>
#include <span>
#include <string>

#include "ptrace/source/probe.hpp"

namespace backtrail::server {

/// @param step  Time of one single-step round trip, or why it could not be measured.
[[nodiscard]] std::string doctor_report(const tracee::MachineFacts& facts,
                                        std::span<const tracee::SourceProbe> sources,
                                        const Result<std::chrono::nanoseconds>& step);

/// Probes the sources, then records the known program with each one that works and compares it with
/// step. Prints to stdout. @return 0; 1 if no source works or one is wrong.
[[nodiscard]] int run_doctor();

}  // namespace backtrail::server
