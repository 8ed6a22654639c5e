// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What may have changed the pages of a dead program besides the instructions of its trace.

#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/values/window.hpp"
#include "ptrace/core/core_memory.hpp"

namespace backtrail::server {

class CorePages {
 public:
  /// All are borrowed. @param alone  The process had one thread only, ever: no other one wrote.
  CorePages(const decoder::CoreFile& core, tracee::CoreMemory& memory, bool alone);

  /// Code and unchanged parts of files are constant. Memory that only the thread can have written
  /// is private: anonymous memory and the data of programs and libraries, if the thread is alone.
  /// The mapping with thread-local variables is not: the kernel writes the restartable sequences'
  /// area in it.
  [[nodiscard]] decoder::values::PageKind kind(TraceeAddr address) const;

 private:
  [[nodiscard]] bool is_constant(TraceeAddr address) const;
  [[nodiscard]] bool is_shared_file(TraceeAddr address) const;
  [[nodiscard]] bool is_private_code(const decoder::CoreSegment& segment, TraceeAddr address) const;

  const decoder::CoreFile& core_;
  tracee::CoreMemory& memory_;
  bool alone_;
  std::vector<const decoder::CoreSegment*> thread_areas_;
};

}  // namespace backtrail::server
