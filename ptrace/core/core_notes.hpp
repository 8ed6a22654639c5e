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
#include "ptrace/core/memory_plan.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

struct CoreThreadState {
  pid_t tid = 0;
  arch::x86::RawRegisters registers;
  std::optional<siginfo_t> siginfo;
  std::uint64_t blocked_signals = 0;
};

/// The records of one thread, compressed when they are asked for.
struct CoreTrace {
  std::uint32_t tid = 0;
  std::string name;
  std::uint64_t records = 0;
  std::uint64_t lost = 0;
  using Sink = std::function<Result<void>(std::span<const std::uint8_t>)>;
  /// Hands blocks (decoder/corefile/trace_blocks.hpp) to the sink, stops at its first error.
  std::function<Result<void>(const Sink&)> write;
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
  [[nodiscard]] static std::vector<std::uint8_t> build_index(std::span<const CoreTrace> traces,
                                                             std::uint64_t trace_offset,
                                                             std::uint64_t trace_bytes);
};

}  // namespace backtrail::tracee
