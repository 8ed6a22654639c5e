#pragma once
/// @file
/// Writes a stopped process to a standard ELF core, with its traces.
///
/// The file has what must survive in front: notes, traces, stacks, the rest of memory. It is
/// written under another name beside its place and renamed when it is whole.

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
  bool full = false;                ///< Unchanged pages of files too.
  std::uint64_t max_bytes = ~0ULL;  ///< Of disk space; memory that does not fit is left out.
  /// Of memory, stacks first.
  std::uint64_t most_memory = ~0ULL;
  /// Called when the disk is full: frees some of it, or returns false. Empty: nobody can.
  std::function<bool()> make_room = {};
};

/// What is known of the death.
struct CoreCause {
  int signal = 0;
  pid_t tid = 0;  ///< Whose; listed first.
  /// Kept from the moment of the signal; later stops know it no more.
  std::optional<siginfo_t> siginfo;
  std::map<std::string, std::string> about;
};

struct CoreResult {
  std::uint64_t file_bytes = 0;  ///< With holes.
  std::uint64_t disk_bytes = 0;  ///< Without.
  /// Memory that should be in it and is not: the disk was full, or the limit was reached.
  std::uint64_t missing_bytes = 0;
  std::uint64_t unreadable_bytes = 0;  ///< Pages that could not be read; they are zero.
  std::uint64_t older_branches = 0;    ///< Of all threads, older than what the file has.
  /// Of the records that the traces had, those that there was no room for: the oldest.
  std::uint64_t records_without_room = 0;
};

using MappingsInAdvance = std::future<Result<MappingsText>>;
/// Of a stopped process, read meanwhile: what it does before write_core() takes time, too.
[[nodiscard]] MappingsInAdvance read_mappings_in_advance(Process& process);

/// All threads are stopped with native registers. `path` is replaced if it exists (a symbolic link
/// itself, not what it leads to). Errors: of the file; kTraceeGone. No file is left then.
Result<CoreResult> write_core(Process& process, const CoreCause& cause,
                              std::span<const CoreTrace> traces, const std::string& path,
                              const CoreOptions& options = {}, MappingsInAdvance mappings = {});

}  // namespace backtrail::tracee
