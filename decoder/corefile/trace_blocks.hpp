// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Stores records in compressed blocks that can be read independently.
///
///   magic(4) crc32 of the rest of the header(4) tid(4) records(4) number of the first(8)
///   raw bytes(4) stored bytes(4)      then a zstd frame with its checksum
///
/// A damaged block loses only its own records. Blocks with another magic hold times, names or
/// recorded values; in those, `records` is a version.

#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/result.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::decoder {

inline constexpr std::uint32_t kBlockMagic = 0x42525442;  // "BTRB"
inline constexpr std::uint32_t kTimesMagic = 0x54525442;  // "BTRT"
inline constexpr std::uint32_t kNamesMagic = 0x4e525442;  // "BTRN"
inline constexpr std::uint32_t kFactsMagic = 0x56525442;  // "BTRV"
inline constexpr std::size_t kBlockHeaderBytes = 32;
/// Most records in a block, and most bytes that it may unpack to.
inline constexpr std::uint32_t kBlockRecords = 32768;
inline constexpr std::uint32_t kMaxRawBlockBytes = 1U << 20U;

/// A block's place in the segment and the fields of its header.
struct TraceBlock {
  std::uint32_t tid = 0;
  std::uint32_t records = 0;
  std::uint64_t first = 0;
  std::uint32_t raw_bytes = 0;
  std::span<const std::uint8_t> stored;
};

/// Appends a block with `records` (at most kBlockRecords) of thread `tid` to `out`. `first` is the
/// number of its oldest record in the thread's trace.
void append_block(std::uint32_t tid, std::uint64_t first, std::span<const Record> records,
                  std::vector<std::uint8_t>& out);

/// The fields of a block's header before its sizes.
struct BlockTitle {
  std::uint32_t magic = kBlockMagic;
  std::uint32_t tid = 0;
  std::uint32_t records = 0;
  std::uint64_t first = 0;
};
/// Appends a block with any contents of at most kMaxRawBlockBytes.
void append_packed(const BlockTitle& title, std::span<const std::uint8_t> raw,
                   std::vector<std::uint8_t>& out);
/// Returns a block's contents, valid until the calling thread's next call. Error kMalformed:
/// damaged.
Result<std::span<const std::uint8_t>> unpack_block(const TraceBlock& block);

struct BlockScan {
  std::vector<TraceBlock> blocks;      ///< Blocks of records, in the order of the segment.
  std::vector<TraceBlock> times;       ///< Blocks of times.
  std::vector<TraceBlock> names;       ///< Blocks of names of code.
  std::vector<TraceBlock> facts;       ///< Blocks of recorded values.
  std::uint64_t unreadable_bytes = 0;  ///< Bytes skipped in search of the next block.
};
/// Finds the blocks of a segment by their headers. The results point into `segment`.
[[nodiscard]] BlockScan scan_blocks(std::span<const std::uint8_t> segment);

/// Appends the records of a block to `out`. Error kMalformed: damaged; `out` is then unchanged.
Result<void> decode_block(const TraceBlock& block, std::vector<Record>& out);

/// Counts of a block's contents besides branches.
struct BlockCounts {
  std::uint64_t others = 0;   ///< Records that are no branches.
  std::uint64_t lost = 0;     ///< Branches that overflow gaps stand for, as far as known.
  bool lost_is_exact = true;  ///< `lost` is complete.
};
/// Counts without decoding branches, but still detects damage. Error kMalformed.
Result<BlockCounts> count_block(const TraceBlock& block);

/// CRC-32 as in zlib.
[[nodiscard]] std::uint32_t crc32(std::span<const std::uint8_t> bytes);

}  // namespace backtrail::decoder
