// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Compares a source's records of the known program with those of single steps.

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/trace/record.hpp"
#include "ptrace/source/source_kind.hpp"

namespace backtrail::server {

struct KnownRun {
  /// Records with gaps, without the gap at the start. Addresses in files that this process has too
  /// are translated to this process's.
  std::vector<decoder::Record> records;
  std::chrono::nanoseconds time{};  ///< From the first instruction to the last.
};

/// Runs the known program in a new process and records it. Errors: those of Engine::launch and of
/// the source; kTraceeGone if the program ended early or took more than 30 seconds.
[[nodiscard]] Result<KnownRun> record_known_program(tracee::SourceKind source);

/// Result of a comparison.
struct SourceCheck {
  bool equal = false;
  std::string words;  ///< One line for people.
};

/// Compares every branch, in order; a gap is a failure. `lbr` records only stretches: each must be
/// found, in order.
[[nodiscard]] SourceCheck compare_with_step(tracee::SourceKind source,
                                            std::span<const decoder::Record> step,
                                            std::span<const decoder::Record> records);

}  // namespace backtrail::server
