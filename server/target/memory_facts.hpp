// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Who may have written a program's memory, besides the instructions of its own thread.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "arch/base/address.hpp"
#include "decoder/corefile/core_file.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::server {

/// Facts of a process, as the recorder knows them at a stop. A crash file keeps them as text (see
/// docs/core-format.md); what it does not tell is nullopt.
struct MemoryFacts {
  /// Writers besides the process itself: other processes, and requests that the kernel fulfils
  /// later.
  enum class Foreign : std::uint8_t {
    kNone,
    kPossible,
    kAnywhere,  ///< Even read-only memory may have been written (/proc/PID/mem), or code of files
                ///< was another.
  };
  using Range = std::pair<TraceeAddr, TraceeAddr>;

  std::uint64_t threads = 0;  ///< Number of threads ever; 0 = unknown.
  std::optional<Foreign> foreign;
  std::optional<bool> shares;  ///< Writable memory is shared with others.
  std::optional<Range> rseq;   ///< The rseq area of the only thread; may be empty.
  std::optional<Range> heap;   ///< The heap made by brk.
  /// Code in no file was mapped or protected otherwise before, while several threads could execute
  /// it.
  bool changes_made_code = false;

  /// Returns true if nobody but the program's only thread can have written its memory. Facts of
  /// versions that did not know all kinds of other writers yet lack `shares`.
  [[nodiscard]] bool alone() const {
    return threads == 1 && foreign == Foreign::kNone && shares.has_value();
  }
};

/// Returns the facts of a process in which `thread` is stopped.
[[nodiscard]] MemoryFacts memory_facts(tracee::Process& process, tracee::Thread& thread);
/// Returns the facts that a crash file tells.
[[nodiscard]] MemoryFacts memory_facts(const decoder::CoreFile& core);
/// Adds the facts to those of a crash file.
void add_memory_facts(const MemoryFacts& facts, std::map<std::string, std::string>& about);

}  // namespace backtrail::server
