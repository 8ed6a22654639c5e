// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Format of the persistent cache's files: a checksum, the build and the key, then the arrays.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ptrace/codecache/persist/persistent_code.hpp"

namespace backtrail::tracee::cache {

/// Arrays to be written, as they lie in memory.
template <typename T>
using PersistentPieceList = std::vector<std::span<const T>>;
using PersistentPieces = PersistentArrays<PersistentPieceList>;

/// Above any real file's size; bounds how much of a damaged file is read.
inline constexpr std::uint64_t kMostPersistentFileBytes = 256ULL << 20;

/// Writes the file at the descriptor's beginning, piece by piece, because there may be tens of
/// megabytes. Returns false if it cannot be written or would be too large.
[[nodiscard]] bool write_persistent(int fd, const std::string& key, const PersistentPieces& parts);

/// Returns views of the arrays; nullopt unless write_persistent() of this build wrote the bytes for
/// that key. If the bytes are known to be `whole`, only the arrays' bounds are checked.
[[nodiscard]] std::optional<PersistentView> read_persistent(std::span<const std::uint8_t> bytes,
                                                            const std::string& key, bool whole);

}  // namespace backtrail::tracee::cache
