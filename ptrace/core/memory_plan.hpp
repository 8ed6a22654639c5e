// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Decides which memory of a process goes into a core, by the kernel's rules for its own cores.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "ptrace/core/page_scan.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// One mapping as described by /proc/PID/smaps.
struct MemoryMapping {
  MapEntry map;
  std::uint64_t resident_bytes = 0;
  std::uint64_t swapped_bytes = 0;
  std::uint64_t anonymous_bytes = 0;  ///< Pages of a private mapping that were written.
  bool dont_dump = false;             ///< MADV_DONTDUMP ("dd"), or device memory ("io").
  bool out_of_reach = false;          ///< The path means this file only in another mount namespace.
};
/// Parses /proc/PID/smaps or /proc/PID/maps. Lines of unknown form are ignored.
[[nodiscard]] std::vector<MemoryMapping> parse_smaps(std::string_view text);

enum class MappingPart : std::uint8_t {
  kNone,       ///< Listed in the core, without contents.
  kFirstPage,  ///< First page of an ELF file, for its build id.
  kPopulated,  ///< Pages with contents; the others are zero.
  kInMemory,   ///< Pages of a file that the process has touched. The others are listed only: they
               ///< have the file's contents, but touching them may allocate memory.
  kWhole,      ///< All pages, even untouched ones, because a file backs them.
};
/// @param full Include unchanged pages of files.
[[nodiscard]] MappingPart part_in_core(const MemoryMapping& mapping, bool full);

/// A planned segment of the core.
struct MemorySegment {
  MapEntry map;
  std::uint64_t file_bytes = 0;      ///< Size in the file from the segment's start, holes included.
  std::vector<AddressRange> ranges;  ///< Memory to copy.
  bool continues = false;            ///< Part of the same mapping as the segment before it.
};
/// Joins the nearest ranges until at most `most_gaps` gaps are left.
void join_near(std::vector<AddressRange>& ranges, std::size_t most_gaps);
/// Splits a segment: space of at least `gap` bytes between its ranges becomes segments without
/// bytes in the file.
[[nodiscard]] std::vector<MemorySegment> split_at_gaps(MemorySegment segment, std::uint64_t gap);
/// Splits very large mappings, because file systems limit a file to some terabytes (ext4: 16) and
/// shadow memory of sanitizers is larger.
[[nodiscard]] std::vector<MemorySegment> split_vast(MemorySegment segment);
/// Text of a process's mappings, as read from /proc.
struct MappingsText {
  std::string text;
  bool details = false;  ///< The text is that of smaps.
};
[[nodiscard]] Result<MappingsText> read_mappings(pid_t pid);
/// Returns a plan for every mapping of the process, by address. Omits mappings in `left_out`.
Result<std::vector<MemorySegment>> plan_memory(pid_t pid, const MappingsText& mappings, bool full,
                                               std::span<const AddressRange> left_out = {});

}  // namespace backtrail::tracee
