// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The notes of a core: the kernel's, in the kernel's order, then Backtrail's.

#include <csignal>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "arch/cpu/registers.hpp"
#include "arch/isa.hpp"
#include "decoder/corefile/core_format.hpp"
#include "ptrace/core/memory_plan.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

struct CoreThreadState {
  pid_t tid = 0;
  arch::cpu::RawRegisters registers;
  std::optional<siginfo_t> siginfo;
  std::uint64_t blocked_signals = 0;
};

/// A block of a trace (decoder/corefile/trace_blocks.hpp) in file form.
struct CoreTraceBlock {
  std::vector<std::uint8_t> bytes;
  std::uint64_t first = 0;    ///< Number of its oldest record in the thread's trace.
  std::uint64_t records = 0;  ///< At least one.
  std::uint64_t others = 0;   ///< Number of its records that are not branches.
};

/// The records of one thread, compressed on demand.
struct CoreTrace {
  std::uint32_t tid = 0;
  std::string name;
  std::uint64_t end = 0;  ///< Number that the next record would get; the first record has 0.
  /// Number of all those records that are not branches, if known.
  std::optional<std::uint64_t> others;
  std::uint64_t held = 0;           ///< Records that newest() can return in all.
  std::uint64_t unnumbered = 0;     ///< Older branches that have no numbers.
  std::vector<std::uint8_t> extra;  ///< Blocks of other kinds: times and names.
  /// Fills in the newest block not returned yet; returns false if none is left.
  std::function<bool(CoreTraceBlock&)> newest;
};

struct CoreNotes {
  arch::Isa isa = arch::Isa::kAmd64;
  int signal = 0;
  ProcStat stat;
  ProcStatus status;
  std::string arguments;
  std::vector<CoreThreadState> threads;  ///< The thread that died comes first.
  std::vector<std::uint8_t> auxv;
  std::vector<MapEntry> files;  ///< File mappings.
  std::map<std::string, std::string> about;

  /// Returns the PT_NOTE segment without its last part, the index.
  [[nodiscard]] std::vector<std::uint8_t> build() const;
  /// Returns the index that ends the segment. Its size depends on the number of traces only, so
  /// that it can be overwritten later.
  [[nodiscard]] static std::vector<std::uint8_t> build_index(
      std::span<const decoder::TraceIndexEntry> traces, std::uint64_t trace_offset,
      std::uint64_t trace_bytes);
};

}  // namespace backtrail::tracee
