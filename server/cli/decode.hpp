// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail decode`: prints a file of raw branch trace as text.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "arch/base/result.hpp"
#include "arch/x86/bts/ds_area.hpp"

namespace backtrail::server {

struct DecodeOptions {
  std::string file;
  /// Format of the debug store whose memory the file is. nullopt: a perf.data file or the output of
  /// `tail --format raw`.
  std::optional<arch::x86::DsFormat> ds_format;
  std::optional<std::uint64_t> base;  ///< Address of the memory's first byte.
  bool all = false;                   ///< Print records after the write pointer too.
};

/// Decodes the bytes of a file to text. Errors: kMalformed, kUnsupported.
[[nodiscard]] Result<std::string> decode_text(std::span<const std::uint8_t> bytes,
                                              const DecodeOptions& options);

/// Prints the decoded file. Returns the exit status.
int run_decode(const DecodeOptions& options);

}  // namespace backtrail::server
