// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells which pages of a program only the instructions of its trace can have changed.

#include <optional>
#include <utility>
#include <vector>

#include "decoder/values/window.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/target/memory_facts.hpp"

namespace backtrail::server {

/// Classifies the pages of a program's image.
class PastPages {
 public:
  /// `memory` is borrowed.
  /// @param alone         Nobody but the process's only thread has ever written to its memory.
  /// @param thread_areas  Addresses of the threads' variables, which matter if the rseq area is not
  ///                      known.
  PastPages(tracee::ProgramMemory& memory, const MemoryFacts& facts, bool alone,
            const std::vector<TraceeAddr>& thread_areas);

  /// Returns kConstant for code, unchanged parts of files and write-protected data of ELF files,
  /// kPrivate for memory that only the thread can have written: anonymous memory and the data of
  /// ELF files, if the thread was alone. Without a fact that tells where the rseq area is, the
  /// mapping with thread-local variables is kUnknown: it may be in there.
  [[nodiscard]] decoder::values::PageKind kind(TraceeAddr address) const;
  /// Returns false for the 8 bytes at `granule` if the kernel may have written them at its own
  /// times.
  [[nodiscard]] bool stable(TraceeAddr granule) const;
  /// Returns true if even read-only memory may have been different at earlier times.
  [[nodiscard]] bool change_anywhere() const {
    return facts_.foreign == MemoryFacts::Foreign::kAnywhere;
  }
  /// Returns true if nobody but the process's only thread has ever changed its memory.
  [[nodiscard]] bool alone() const { return alone_; }
  /// Returns true if all writable memory is kPrivate, and none is known to be shared.
  [[nodiscard]] bool all_is_private() const;
  /// Returns the bounds of the heap made by brk; nullopt if that is not known.
  [[nodiscard]] std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() const {
    return facts_.heap;
  }

 private:
  [[nodiscard]] bool is_constant(TraceeAddr address) const;
  [[nodiscard]] bool is_shared_file(TraceeAddr address) const;
  [[nodiscard]] bool is_private_code(const decoder::CoreSegment& segment, TraceeAddr address) const;
  [[nodiscard]] bool is_protected_data(TraceeAddr address) const;

  tracee::ProgramMemory& memory_;
  MemoryFacts facts_;
  bool alone_;
  std::vector<const decoder::CoreSegment*>
      thread_areas_;  ///< Segments that may hold the rseq area.
};

}  // namespace backtrail::server
