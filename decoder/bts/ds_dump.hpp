#pragma once
/// @file
/// A debug store as plain memory: a crash dump's, or what a debugger read. Oldest record first.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/x86/bts/ds_area.hpp"

namespace backtrail::decoder {

struct DsDumpOptions {
  arch::x86::DsFormat format = arch::x86::DsFormat::kCore2;
  /// Address of the image's first byte. Without it the buffer is taken to be the image's end, as
  /// in an image made of the save area and the buffer alone.
  std::optional<std::uint64_t> base;
  /// Also what lies beyond the index, which is older: the ring wrapped, or the system emptied the
  /// buffer by setting the index back. Otherwise that is done only when the ring surely wrapped.
  bool all = false;
};

struct DsDump {
  arch::x86::DsArea area;
  bool wrapped = false;  ///< Records beyond the index were taken too.
  /// kInvalid entries stand where a record is none (a from of 0 without a known qualifier).
  std::vector<arch::x86::BtsEntry> entries;
  std::uint64_t missing_bytes = 0;  ///< Of the buffer, that the image does not hold.
};

/// The save area is at the image's begin. Errors: of parse_ds_area(); kMalformed when the buffer is
/// not in the image, or without a base, when it was cut short or holds nothing like records.
[[nodiscard]] Result<DsDump> read_ds_dump(std::span<const std::uint8_t> image,
                                          const DsDumpOptions& options);

/// The entries of a buffer, oldest first. The newest one ends at byte `index`. `wrapped`: those
/// from `index` on are older ones; else they are no records. The bytes behind the last whole record
/// of the buffer are never used.
[[nodiscard]] std::vector<arch::x86::BtsEntry> read_bts_ring(std::span<const std::uint8_t> buffer,
                                                             std::uint64_t index, bool wrapped,
                                                             arch::x86::DsFormat format);

}  // namespace backtrail::decoder
