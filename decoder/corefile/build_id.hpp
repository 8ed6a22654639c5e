#pragma once
/// @file
/// The name that a linker gave an ELF file's contents.

#include <cstdint>
#include <span>
#include <string>

namespace backtrail::decoder {

/// As hexadecimal digits, from a file's bytes or the first page of them; empty when it has none or
/// it lies elsewhere. Source: elf.h, NT_GNU_BUILD_ID.
[[nodiscard]] std::string build_id_of(std::span<const std::uint8_t> elf);

}  // namespace backtrail::decoder
