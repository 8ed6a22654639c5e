// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Tells which pages of a dead program only the instructions of its trace can have changed.

#include <optional>
#include <utility>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/values/window.hpp"
#include "ptrace/core/core_memory.hpp"

namespace backtrail::server {

/// Classifies the pages of a core.
class CorePages {
 public:
  /// `core` and `memory` are borrowed.
  /// @param alone  Nobody but the process's only thread has ever written to its memory.
  CorePages(const decoder::CoreFile& core, tracee::CoreMemory& memory, bool alone);

  /// Returns kConstant for code and unchanged parts of files, kPrivate for memory that only the
  /// thread can have written: anonymous memory and the data of ELF files, if the thread was alone.
  /// Without a fact that tells where the rseq area is, the mapping with thread-local variables is
  /// kUnknown: it may be in there.
  [[nodiscard]] decoder::values::PageKind kind(TraceeAddr address) const;
  /// Returns false for the 8 bytes at `granule` if the kernel may have written them at its own
  /// times.
  [[nodiscard]] bool stable(TraceeAddr granule) const;
  /// Returns true if even read-only memory may have been different at earlier times.
  [[nodiscard]] bool change_anywhere() const { return change_anywhere_; }
  /// Returns true if all writable memory is kPrivate, and the file says that none is shared.
  [[nodiscard]] bool all_is_private() const;
  /// Returns the bounds of the heap made by brk; nullopt if the file does not tell.
  [[nodiscard]] std::optional<std::pair<TraceeAddr, TraceeAddr>> heap() const { return heap_; }

 private:
  [[nodiscard]] bool is_constant(TraceeAddr address) const;
  [[nodiscard]] bool is_shared_file(TraceeAddr address) const;
  [[nodiscard]] bool is_private_code(const decoder::CoreSegment& segment, TraceeAddr address) const;

  const decoder::CoreFile& core_;
  tracee::CoreMemory& memory_;
  bool alone_;
  bool change_anywhere_ = false;
  std::vector<const decoder::CoreSegment*>
      thread_areas_;  ///< Segments that may hold the rseq area.
  std::optional<std::pair<TraceeAddr, TraceeAddr>> rseq_;
  std::optional<std::pair<TraceeAddr, TraceeAddr>> heap_;
};

}  // namespace backtrail::server
