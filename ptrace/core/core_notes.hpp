#pragma once
/// @file
/// The notes of a core, in the kernel's order, and ours behind them.

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
#include "arch/isa.hpp"
#include "arch/x86/raw_registers.hpp"
#include "decoder/corefile/core_format.hpp"
#include "ptrace/core/memory_plan.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

struct CoreThreadState {
  pid_t tid = 0;
  arch::x86::RawRegisters registers;
  std::optional<siginfo_t> siginfo;
  std::uint64_t blocked_signals = 0;
};

/// A block of a trace (decoder/corefile/trace_blocks.hpp), as it goes into the file.
struct CoreTraceBlock {
  std::vector<std::uint8_t> bytes;
  std::uint64_t first = 0;    ///< Number of its oldest record in the thread's trace.
  std::uint64_t records = 0;  ///< At least one.
  std::uint64_t others = 0;   ///< Of these, how many are no branches.
};

/// The records of one thread, compressed when they are asked for.
struct CoreTrace {
  std::uint32_t tid = 0;
  std::string name;
  std::uint64_t end = 0;  ///< The number that the next record would have; the first one has 0.
  /// How many of all of them are no branches, if that is known.
  std::optional<std::uint64_t> others;
  std::uint64_t held = 0;           ///< Records that newest() has at first.
  std::uint64_t unnumbered = 0;     ///< Still older branches, which have no numbers.
  std::vector<std::uint8_t> extra;  ///< Blocks of other kinds: times and names.
  /// Fills in the newest block that was not asked for yet; false: there are no more.
  std::function<bool(CoreTraceBlock&)> newest;
};

struct CoreNotes {
  arch::Isa isa = arch::Isa::kAmd64;
  int signal = 0;
  ProcStat stat;
  ProcStatus status;
  std::string arguments;
  std::vector<CoreThreadState> threads;  ///< The one that died first.
  std::vector<std::uint8_t> auxv;
  std::vector<MapEntry> files;  ///< File mappings.
  std::map<std::string, std::string> about;

  /// The PT_NOTE segment but for its end.
  [[nodiscard]] std::vector<std::uint8_t> build() const;
  /// Its end; the size does not depend on what the traces' places are.
  [[nodiscard]] static std::vector<std::uint8_t> build_index(
      std::span<const decoder::TraceIndexEntry> traces, std::uint64_t trace_offset,
      std::uint64_t trace_bytes);
};

}  // namespace backtrail::tracee
