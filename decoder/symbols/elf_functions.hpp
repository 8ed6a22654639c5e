// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads the functions of an ELF module.

#include <cstdint>
#include <vector>

#include "decoder/symbols/function_table.hpp"

struct Dwfl_Module;
struct Elf;

namespace backtrail::decoder {

/// Returns every function known from symbols, PLTs or unwind tables, at its address in the process.
/// Looks for a separate debug file.
[[nodiscard]] FunctionTable read_functions(Dwfl_Module* module);

// The parts of read_functions(). Addresses are shifted by `bias`. A damaged table ends at the first
// invalid entry.

/// Returns the entries of .plt sections, named after their targets ("puts@plt"). `symbols` names
/// the resolvers of indirect functions.
[[nodiscard]] std::vector<CodeSymbol> plt_symbols(Elf* elf, std::uint64_t bias,
                                                  const std::vector<CodeSymbol>& symbols);
/// Returns the lazy-binding functions of glibc's dynamic linker that have no name in `symbols`.
/// They are recognised by their code.
[[nodiscard]] std::vector<CodeSymbol> lazy_resolvers(Elf* elf, std::uint64_t bias,
                                                     const std::vector<CodeSymbol>& symbols,
                                                     const std::vector<std::uint64_t>& starts);
/// Returns where functions begin, from the search table of .eh_frame_hdr, in ascending order.
[[nodiscard]] std::vector<std::uint64_t> unwind_starts(Elf* elf, std::uint64_t bias);

}  // namespace backtrail::decoder
