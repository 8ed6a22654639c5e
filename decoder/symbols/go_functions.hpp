// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads Go's own function table (.gopclntab), which is also in programs linked without symbols,
/// such as those of `go test`.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/symbols/function_table.hpp"

struct Elf;

namespace backtrail::decoder {

/// Returns functions at the file's own addresses. Reads tables of Go 1.16 and later in 64-bit
/// programs; stops at the first invalid entry. Source: go/src/debug/gosym/pclntab.go,
/// runtime/symtab.go.
/// @param table  The section's bytes.
/// @param text   Start of the code, for tables that do not state it.
[[nodiscard]] std::vector<CodeSymbol> go_functions(std::span<const std::uint8_t> table,
                                                   std::uint64_t text);

/// Reads the table of a file; shifts addresses by `bias`. Empty if there is no table.
[[nodiscard]] std::vector<CodeSymbol> go_functions_of(Elf* elf, std::uint64_t bias);

}  // namespace backtrail::decoder
