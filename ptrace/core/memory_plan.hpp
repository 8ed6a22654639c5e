#pragma once
/// @file
/// Which memory of a process goes into a core, by the rules the kernel has for its own cores.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sys/types.h>

#include "arch/base/result.hpp"
#include "ptrace/core/page_scan.hpp"
#include "ptrace/os/procfs.hpp"

namespace backtrail::tracee {

/// What /proc/PID/smaps says of one mapping.
struct MemoryMapping {
  MapEntry map;
  std::uint64_t resident_bytes = 0;
  std::uint64_t swapped_bytes = 0;
  std::uint64_t anonymous_bytes = 0;  ///< Written pages of a private mapping.
  bool dont_dump = false;             ///< MADV_DONTDUMP ("dd"), or device memory ("io").
  bool out_of_reach = false;          ///< Its file has that name in another mount namespace only.
};
/// Lines it does not understand are passed over. Also takes the text of /proc/PID/maps.
[[nodiscard]] std::vector<MemoryMapping> parse_smaps(std::string_view text);

enum class MappingPart : std::uint8_t {
  kNone,       ///< Listed; its contents are not in the core.
  kFirstPage,  ///< An ELF file's, for its build-id.
  kPopulated,  ///< Pages that have contents; the others are zero.
  kWhole,      ///< Also pages that were never touched: a file is behind them.
};
/// @param full  Unchanged pages of files too.
[[nodiscard]] MappingPart part_in_core(const MemoryMapping& mapping, bool full);

/// A segment of the core to be.
struct MemorySegment {
  MapEntry map;
  std::uint64_t file_bytes = 0;      ///< From the segment's begin on, in the file (holes count).
  std::vector<AddressRange> ranges;  ///< What of it is to be copied.
};
/// Vast mappings in pieces: what lies between their contents is listed, but not in the file, for
/// file systems hold some terabytes in one (ext4 16), and shadows of sanitizers are larger.
[[nodiscard]] std::vector<MemorySegment> split_vast(MemorySegment segment);
/// What /proc says of a process's mappings.
struct MappingsText {
  std::string text;
  bool details = false;  ///< As smaps has them.
};
[[nodiscard]] Result<MappingsText> read_mappings(pid_t pid);
/// Every mapping of the process, by address. Mappings that the recorder itself made are left out.
Result<std::vector<MemorySegment>> plan_memory(pid_t pid, const MappingsText& mappings, bool full);

}  // namespace backtrail::tracee
