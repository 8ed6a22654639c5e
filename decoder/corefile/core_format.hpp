// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Backtrail's additions to an ELF core. docs/core-format.md describes them for other readers.

#include <cstdint>
#include <string_view>

namespace backtrail::decoder {

/// Owner of Backtrail's notes. BFD selects parsers by a prefix of the owner; no prefix that it
/// knows matches this one.
inline constexpr std::string_view kNoteOwner = "BACKTRAIL";
/// Types of Backtrail's notes, above every type that BFD reads regardless of the owner.
inline constexpr std::uint32_t kIndexNote = 0x42540001;
inline constexpr std::uint32_t kAboutNote = 0x42540002;
/// Type of the segment that holds the traces. Debuggers skip types within PT_LOOS..PT_HIOS.
inline constexpr std::uint32_t kTraceSegment = 0x62747261;

inline constexpr std::uint32_t kFormatVersion = 1;

/// An entry of the index note, for one thread.
struct TraceIndexEntry {
  std::uint32_t tid = 0;
  std::uint32_t about_lost = 0;  ///< The kIndex... bits and a count, see below.
  std::uint64_t records = 0;     ///< Records in the segment.
  std::uint64_t lost = 0;        ///< Older records that were not kept.
  char name[16] = {};            ///< The thread's comm; not necessarily terminated by NUL.
};
/// Size of an entry in the file: tid(4) about_lost(4) records(8) lost(8) name(16).
inline constexpr std::size_t kIndexEntryBytes = 40;
/// Bit of `about_lost`: the trace's records are numbered from 0 to lost + records, so that missing
/// records show anywhere.
inline constexpr std::uint32_t kIndexNumbered = 1U << 31U;
/// Bit of `about_lost`. If set, `lost` is exact, and the count is the number of lost records that
/// are no branches. If clear, the count is the number of older branches without a number.
inline constexpr std::uint32_t kIndexExact = 1U << 30U;
inline constexpr std::uint32_t kIndexCountMask = kIndexExact - 1;
/// Size of the index header: version(4) thread count(4) segment offset(8) segment size(8).
inline constexpr std::size_t kIndexHeaderBytes = 24;

}  // namespace backtrail::decoder
