#pragma once
/// @file
/// Files that `perf record` writes: where the AUX bytes are.
///
/// Source: tools/perf/Documentation/perf.data-file-format.txt of Linux.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/perf/perf_record.hpp"

namespace backtrail::decoder {

enum class AuxTraceKind : std::uint32_t { kNone = 0, kIntelPt = 1, kIntelBts = 2 };

/// One AUXTRACE record: bytes that the hardware wrote.
struct AuxTraceBlock {
  std::span<const std::uint8_t> bytes;  ///< In the file.
  std::uint64_t offset = 0;             ///< The AUX area's head when it was copied.
  std::uint32_t cpu = 0;                ///< 0xffffffff = any.
  std::uint32_t tid = 0;
  std::uint64_t missing_bytes = 0;  ///< That the record promises and the file does not have.
  std::uint64_t repeated_bytes =
      0;  ///< At the front, that an earlier snapshot had; not in `bytes`.
};

struct PerfDataFile {
  AuxTraceKind aux_kind = AuxTraceKind::kNone;
  bool snapshot = false;
  std::string cpuid;  ///< As perf wrote it: "GenuineIntel,6,78,3"; empty = not in the file.
  std::vector<AuxTraceBlock> blocks;
  std::uint64_t records = 0;
  std::uint64_t aux_records = 0;
  std::uint64_t aux_record_bytes = 0;  ///< What the AUX records of the kernel add up to.
  std::uint64_t aux_truncated = 0;     ///< AUX records with the flag.
  std::uint64_t lost = 0;              ///< What LOST records say.
  /// Where the file makes no sense any more, if it does; all before it was read.
  std::optional<std::uint64_t> broken_at;
  std::uint64_t missing_bytes = 0;  ///< Of the records, behind the end of the file.
  bool compressed = false;          ///< Some records are compressed; AUX bytes never are.
};

/// Reads the file's index; the blocks point into `file`. Pipe-mode files too.
/// Error kMalformed when it is no perf.data file; kUnsupported when it was written by a machine of
/// the other byte order.
[[nodiscard]] Result<PerfDataFile> read_perf_data(std::span<const std::uint8_t> file);

}  // namespace backtrail::decoder
