#pragma once
/// @file
/// Looks for restartable sequences in a program's file.

#include <cstdint>
#include <span>
#include <string>

namespace backtrail::tracee::cache {

/// The bytes that stand in front of every abort handler are in it, other than as the argument of
/// the call that registers a thread.
[[nodiscard]] bool has_abort_signature(std::span<const std::uint8_t> code);

/// The same of a part of a file; true when it cannot be read.
[[nodiscard]] bool file_has_abort_signature(const std::string& path, std::uint64_t offset,
                                            std::uint64_t bytes);

}  // namespace backtrail::tracee::cache
