#pragma once
/// @file
/// `backtrail decode`: what a file of raw branch trace holds, as text.

#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "arch/base/result.hpp"
#include "arch/x86/bts/ds_area.hpp"

namespace backtrail::server {

struct DecodeOptions {
  std::string file;
  /// The file is the memory of a debug store in this form; without it, a perf.data file or what
  /// `tail --format raw` wrote.
  std::optional<arch::x86::DsFormat> ds_format;
  std::optional<std::uint64_t> base;  ///< Address of the memory's first byte.
  bool all = false;                   ///< Also the records behind the write pointer.
};

/// The text for the bytes of a file. Errors: kMalformed, kUnsupported.
[[nodiscard]] Result<std::string> decode_text(std::span<const std::uint8_t> bytes,
                                              const DecodeOptions& options);

/// Prints it; the exit status.
int run_decode(const DecodeOptions& options);

}  // namespace backtrail::server
