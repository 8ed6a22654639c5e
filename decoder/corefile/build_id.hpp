// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads the build id of an ELF file.

#include <cstdint>
#include <span>
#include <string>

namespace backtrail::decoder {

/// Returns the build id as hexadecimal digits; empty if there is none in `elf`, which may be a
/// file's bytes or only its first page. Source: elf.h, NT_GNU_BUILD_ID.
[[nodiscard]] std::string build_id_of(std::span<const std::uint8_t> elf);

}  // namespace backtrail::decoder
