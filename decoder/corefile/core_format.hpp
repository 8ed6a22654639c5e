#pragma once
/// @file
/// What Backtrail puts into an ELF core beside what every core has. docs/core-format.md says it for
/// other readers.

#include <cstdint>
#include <string_view>

namespace backtrail::decoder {

/// Owner of our notes. BFD picks parsers by a name's beginning; this one begins no other's.
inline constexpr std::string_view kNoteOwner = "BACKTRAIL";
/// Types of our notes. Above every type that BFD reads without looking at the owner.
inline constexpr std::uint32_t kIndexNote = 0x42540001;
inline constexpr std::uint32_t kAboutNote = 0x42540002;
/// The segment that holds the traces. Within PT_LOOS..PT_HIOS: debuggers pass over it unread.
inline constexpr std::uint32_t kTraceSegment = 0x62747261;

inline constexpr std::uint32_t kFormatVersion = 1;

/// A thread's entry in the index note.
struct TraceIndexEntry {
  std::uint32_t tid = 0;
  std::uint32_t about_lost = 0;  ///< See below.
  std::uint64_t records = 0;     ///< In the segment.
  std::uint64_t lost = 0;        ///< Older ones that were not kept.
  char name[16] = {};            ///< The thread's comm; need not end in NUL.
};
/// Its size in the file: tid(4) about lost(4) records(8) lost(8) name(16).
inline constexpr std::size_t kIndexEntryBytes = 40;
/// In `about_lost`: the trace's records are numbered from 0 to lost + records, so that missing ones
/// show wherever they are missing.
inline constexpr std::uint32_t kIndexNumbered = 1U << 31U;
/// In `about_lost`: the rest of it is how many of the lost records are no branches, and `lost` is
/// exact. Without it the rest is how many older branches there were that have no number.
inline constexpr std::uint32_t kIndexExact = 1U << 30U;
inline constexpr std::uint32_t kIndexCountMask = kIndexExact - 1;
/// version(4) thread count(4) segment offset(8) segment size(8).
inline constexpr std::size_t kIndexHeaderBytes = 24;

}  // namespace backtrail::decoder
