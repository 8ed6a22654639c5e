#pragma once
/// @file
/// What is in a crash file, for people.

#include <cstdint>
#include <string>

#include "decoder/corefile/core_file.hpp"
#include "ptrace/core/core_memory.hpp"

namespace backtrail::server {

/// A mapped file, as the core and this machine have it.
struct MappedProgramFile {
  std::string path;      ///< In the core.
  std::string build_id;  ///< As the core has it; may be empty.
  std::string found;     ///< Where it is here; empty: nowhere, or another one is there.
};
/// Each file once, in the order of addresses.
[[nodiscard]] std::vector<MappedProgramFile> mapped_program_files(const decoder::CoreFile& core,
                                                                  tracee::CoreMemory& memory);

/// Lines. `name` is the file's; `disk_bytes` what it takes on disk.
[[nodiscard]] std::string crash_info(const std::string& name, std::uint64_t disk_bytes,
                                     const decoder::CoreFile& core, tracee::CoreMemory& memory);

/// "12 kB", "3 MB".
[[nodiscard]] std::string size_text(std::uint64_t bytes);

}  // namespace backtrail::server
