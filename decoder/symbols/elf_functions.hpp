#pragma once
/// @file
/// What an ELF module tells of its functions.

#include <cstdint>
#include <vector>

#include "decoder/symbols/function_table.hpp"

struct Dwfl_Module;
struct Elf;

namespace backtrail::decoder {

/// Every function that symbols, procedure linkage tables or unwind tables know, at the addresses
/// that the module has in the process. Looks for a separate debug file.
[[nodiscard]] FunctionTable read_functions(Dwfl_Module* module);

// Its parts, with addresses moved by `bias`. Damaged tables end where they stop making sense.

/// Entries of .plt and its kin, named after the functions they lead to ("puts@plt"). Resolvers of
/// indirect functions are named by `symbols`.
[[nodiscard]] std::vector<CodeSymbol> plt_symbols(Elf* elf, std::uint64_t bias,
                                                  const std::vector<CodeSymbol>& symbols);
/// The functions of glibc's dynamic linker that go on to what a lazily bound call is for, as far as
/// `symbols` has no name at their starts: they are known by their shape.
[[nodiscard]] std::vector<CodeSymbol> lazy_resolvers(Elf* elf, std::uint64_t bias,
                                                     const std::vector<CodeSymbol>& symbols,
                                                     const std::vector<std::uint64_t>& starts);
/// Where functions begin, from the search table of .eh_frame_hdr; in ascending order.
[[nodiscard]] std::vector<std::uint64_t> unwind_starts(Elf* elf, std::uint64_t bias);

}  // namespace backtrail::decoder
