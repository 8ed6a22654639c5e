// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads files written by `perf record` and finds the AUX bytes in them.
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

/// The bytes of one AUXTRACE record, written by the hardware.
struct AuxTraceBlock {
  std::span<const std::uint8_t> bytes;  ///< Point into the file.
  std::uint64_t offset = 0;             ///< The AUX area's head at the time of the copy.
  std::uint32_t cpu = 0;                ///< 0xffffffff for any.
  std::uint32_t tid = 0;
  std::uint64_t missing_bytes = 0;  ///< Bytes that the record announces but the file lacks.
  /// Leading bytes that an earlier snapshot had; not in `bytes`.
  std::uint64_t repeated_bytes = 0;
};

struct PerfDataFile {
  AuxTraceKind aux_kind = AuxTraceKind::kNone;
  bool snapshot = false;
  std::string cpuid;  ///< As written by perf, "GenuineIntel,6,78,3"; empty if not in the file.
  std::vector<AuxTraceBlock> blocks;
  std::uint64_t records = 0;
  std::uint64_t aux_records = 0;
  std::uint64_t aux_record_bytes = 0;  ///< Sum of the sizes in the kernel's AUX records.
  std::uint64_t aux_truncated = 0;     ///< AUX records with the truncated flag.
  std::uint64_t lost = 0;              ///< Sum of the LOST records.
  /// Offset of the first invalid record, if any; everything before it was read.
  std::optional<std::uint64_t> broken_at;
  std::uint64_t missing_bytes = 0;  ///< Bytes of records beyond the end of the file.
  bool compressed = false;          ///< Some records are compressed; AUX bytes never are.
};

/// Reads the file's index, also in pipe mode. The blocks point into `file`. Error kMalformed: not a
/// perf.data file. Error kUnsupported: the file has the other byte order.
[[nodiscard]] Result<PerfDataFile> read_perf_data(std::span<const std::uint8_t> file);

}  // namespace backtrail::decoder
