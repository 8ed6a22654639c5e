// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Describes the contents of a crash file for people.

#include <cstdint>
#include <string>

#include "decoder/corefile/core_file.hpp"
#include "ptrace/core/program_memory.hpp"

namespace backtrail::server {

/// A mapped file, in the core and on this machine.
struct MappedProgramFile {
  std::string path;      ///< Path in the core.
  std::string build_id;  ///< Build id in the core; may be empty.
  std::string found;     ///< Matching file on this machine; empty if there is none.
};
/// Returns each mapped file once, in the order of addresses.
[[nodiscard]] std::vector<MappedProgramFile> mapped_program_files(const decoder::CoreFile& core,
                                                                  tracee::ProgramMemory& memory);

/// Returns the description, several lines. `name` is the file's name, `disk_bytes` its size on
/// disk.
[[nodiscard]] std::string crash_info(const std::string& name, std::uint64_t disk_bytes,
                                     const decoder::CoreFile& core, tracee::ProgramMemory& memory);

/// Returns a size as "12 kB" or "3 MB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace backtrail::server
