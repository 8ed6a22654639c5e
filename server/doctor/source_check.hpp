#pragma once
/// @file
/// Whether a source tells of the known program what single steps tell.

#include <chrono>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/trace/record.hpp"
#include "ptrace/source/source_kind.hpp"

namespace backtrail::server {

struct KnownRun {
  /// Gaps included; without the one where it begins. Addresses of files that this process has, too,
  /// are this process's.
  std::vector<decoder::Record> records;
  std::chrono::nanoseconds time{};  ///< From the first instruction to the last.
};

/// Runs the known program in a process of its own and records it. Errors: of Engine::launch, of the
/// source; kTraceeGone when the program ended early or did not get to its end in 30 seconds.
[[nodiscard]] Result<KnownRun> record_known_program(tracee::SourceKind source);

/// What a comparison found.
struct SourceCheck {
  bool equal = false;
  std::string words;  ///< One line for people.
};

/// A source has to tell every branch, in order, with no gap. `lbr` only ever has stretches: each
/// has to be found, in order.
[[nodiscard]] SourceCheck compare_with_step(tracee::SourceKind source,
                                            std::span<const decoder::Record> step,
                                            std::span<const decoder::Record> records);

}  // namespace backtrail::server
