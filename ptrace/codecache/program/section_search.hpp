// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Searches a program's file for rseq critical sections.

#include <cstdint>
#include <span>
#include <string>

namespace backtrail::tracee::cache {

/// Returns true if the code contains the signature that precedes every abort handler, except as the
/// argument of the call that registers a thread.
[[nodiscard]] bool has_abort_signature(std::span<const std::uint8_t> code);

/// Does this for a part of a file. True if the part cannot be read.
[[nodiscard]] bool file_has_abort_signature(const std::string& path, std::uint64_t offset,
                                            std::uint64_t bytes);

}  // namespace backtrail::tracee::cache
