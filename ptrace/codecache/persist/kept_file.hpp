#pragma once
/// @file
/// The file that kept translations lie in: a checksum, who made it for what, array behind array.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptrace/codecache/persist/kept_code.hpp"

namespace backtrail::tracee::cache {

/// Arrays that are to be written, as they lie in memory.
template <typename T>
using KeptPieceList = std::vector<std::span<const T>>;
using KeptPieces = KeptArrays<KeptPieceList>;

/// More than any real file; bounds what a damaged one can make us read.
inline constexpr std::uint64_t kMostKeptFileBytes = 256ULL << 20;

/// From the descriptor's beginning on, piece by piece: there may be tens of megabytes. False when
/// it could not be written, or would be too large.
[[nodiscard]] bool write_kept(int fd, const std::string& key, const KeptPieces& parts);

/// Nothing for what write_kept() of this build has not written for that key. Only the arrays'
/// places are looked at when the bytes are known to be `whole`.
[[nodiscard]] std::optional<KeptView> read_kept(std::span<const std::uint8_t> bytes,
                                                const std::string& key, bool whole);

}  // namespace backtrail::tracee::cache
