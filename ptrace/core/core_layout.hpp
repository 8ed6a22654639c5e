// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Layout of a core file: which part lies where.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/isa.hpp"
#include "ptrace/core/memory_plan.hpp"

namespace backtrail::tracee {

/// Headers of a core: one PT_NOTE, one segment of traces, and the memory segments.
struct CoreLayout {
  arch::Isa isa = arch::Isa::kAmd64;
  std::uint64_t notes_offset = 0;
  std::uint64_t notes_bytes = 0;
  std::uint64_t trace_offset = 0;
  std::uint64_t trace_bytes = 0;
  struct Load {
    std::uint64_t address = 0;
    std::uint64_t memory_bytes = 0;
    std::uint64_t offset = 0;
    std::uint64_t file_bytes = 0;
    std::uint32_t flags = 0;
  };
  std::vector<Load> loads;  ///< Memory segments, by address.

  /// Returns the size in bytes of the headers for `loads` memory segments. They begin the file.
  [[nodiscard]] static std::uint64_t header_bytes(arch::Isa isa, std::size_t loads);
  [[nodiscard]] std::vector<std::uint8_t> headers() const;
};

}  // namespace backtrail::tracee
