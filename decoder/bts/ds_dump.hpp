// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads a debug store from plain memory, such as a crash dump. Oldest record first.

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/x86/bts/ds_area.hpp"

namespace backtrail::decoder {

struct DsDumpOptions {
  arch::x86::DsFormat format = arch::x86::DsFormat::kCore2;
  /// Address of the image's first byte. If absent, the buffer is taken to be at the image's end, as
  /// in an image of the save area and the buffer alone.
  std::optional<std::uint64_t> base;
  /// Includes records beyond the index, which are older: the ring wrapped, or the system emptied
  /// the buffer by resetting the index. Otherwise they are included only if the ring certainly
  /// wrapped.
  bool all = false;
};

struct DsDump {
  arch::x86::DsArea area;
  bool wrapped = false;  ///< Records beyond the index are included.
  /// Invalid records (a `from` of 0 without a known qualifier) are kInvalid entries.
  std::vector<arch::x86::BtsEntry> entries;
  std::uint64_t missing_bytes = 0;  ///< Bytes of the buffer that the image lacks.
};

/// Reads an image that begins with the save area. Errors: those of parse_ds_area(); kMalformed if
/// the buffer is not in the image or, without a base, if it was cut short or holds no plausible
/// records.
[[nodiscard]] Result<DsDump> read_ds_dump(std::span<const std::uint8_t> image,
                                          const DsDumpOptions& options);

/// Returns the entries of a buffer, oldest first. The newest ends at byte `index`. If `wrapped`,
/// entries from `index` on are the oldest; otherwise they are no records. Trailing bytes that hold
/// no whole record are unused.
[[nodiscard]] std::vector<arch::x86::BtsEntry> read_bts_ring(std::span<const std::uint8_t> buffer,
                                                             std::uint64_t index, bool wrapped,
                                                             arch::x86::DsFormat format);

}  // namespace backtrail::decoder
