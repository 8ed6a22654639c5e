// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Writes a stopped process to a standard ELF core, with its traces.
///
/// The most important parts come first in the file: notes, traces, stacks, then the rest of memory.
/// The file is written under a temporary name in the same folder and renamed once complete.

#include <cstdint>
#include <functional>
#include <future>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "ptrace/core/core_notes.hpp"
#include "ptrace/core/memory_plan.hpp"

namespace backtrail::tracee {

class Process;
class Thread;

struct CoreOptions {
  bool full = false;  ///< Include unchanged pages of mapped files.
  /// Mappings that are not the program's. The core does not list them either.
  std::vector<AddressRange> left_out = {};
  std::uint64_t max_bytes = ~0ULL;  ///< Limit on disk space; memory that does not fit is left out.
  /// Limit on memory contents in bytes; stacks come first.
  std::uint64_t most_memory = ~0ULL;
  /// Called when the disk is full: frees space and returns true, or returns false. Empty if space
  /// cannot be freed.
  std::function<bool()> make_room = {};
};

/// Why the process died.
struct CoreCause {
  int signal = 0;
  pid_t tid = 0;  ///< The thread that died; listed first.
  /// Saved at the moment of the signal; it cannot be read at later stops.
  std::optional<siginfo_t> siginfo;
  std::map<std::string, std::string> about;
};

struct CoreResult {
  std::uint64_t file_bytes = 0;  ///< Size of the file, holes included.
  std::uint64_t disk_bytes = 0;  ///< Bytes written, holes excluded.
  /// Bytes of memory left out because the disk was full or a limit was reached.
  std::uint64_t missing_bytes = 0;
  std::uint64_t unreadable_bytes = 0;  ///< Bytes of pages that could not be read; the segment ends
                                       ///< before them, or has zeros there.
  std::uint64_t older_branches = 0;    ///< Branches of all threads older than the ones in the file.
  /// Records of the traces that did not fit: the oldest.
  std::uint64_t records_without_room = 0;
};

using MappingsInAdvance = std::future<Result<MappingsText>>;
/// Starts to read the mappings of a stopped process, so that they arrive while the caller prepares
/// write_core().
[[nodiscard]] MappingsInAdvance read_mappings_in_advance(Process& process);

/// Writes a core. All threads must be stopped with native registers. Replaces `path` if it exists
/// (a symbolic link itself, not its target). Errors: those of the file; kTraceeGone. On error no
/// file is left.
Result<CoreResult> write_core(Process& process, const CoreCause& cause,
                              std::span<const CoreTrace> traces, const std::string& path,
                              const CoreOptions& options = {}, MappingsInAdvance mappings = {});

}  // namespace backtrail::tracee
