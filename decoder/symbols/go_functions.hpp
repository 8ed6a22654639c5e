#pragma once
/// @file
/// Go's own table of functions (.gopclntab), which programs have that were linked without symbols:
/// those that `go test` runs.

#include <cstdint>
#include <span>
#include <vector>

#include "decoder/symbols/function_table.hpp"

struct Elf;

namespace backtrail::decoder {

/// @param table  The section's bytes.
/// @param text   Where code begins, for tables that do not tell.
/// Addresses are the file's own. Tables of Go 1.16 and later, of 64-bit programs; a damaged one
/// ends where it stops making sense. Source: go/src/debug/gosym/pclntab.go, runtime/symtab.go.
[[nodiscard]] std::vector<CodeSymbol> go_functions(std::span<const std::uint8_t> table,
                                                   std::uint64_t text);

/// The same, of a file; addresses moved by `bias`. Empty where there is no such table.
[[nodiscard]] std::vector<CodeSymbol> go_functions_of(Elf* elf, std::uint64_t bias);

}  // namespace backtrail::decoder
