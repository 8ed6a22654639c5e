// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Maps addresses of a process to names and lines.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arch/cpu/dwarf_registers.hpp"
#include "decoder/calls/code_map.hpp"
#include "decoder/corefile/code_names.hpp"
#include "decoder/symbols/stack.hpp"
#include "decoder/variables/variable_reader.hpp"

namespace backtrail::decoder {

/// A mapped file, or code without a file (the vdso).
struct LoadedModule {
  struct Piece {
    TraceeAddr start;
    TraceeAddr end;
    std::uint64_t file_offset = 0;
  };
  std::string path;                 ///< Path in the process.
  std::string found;                ///< Local path; empty if not found.
  std::vector<std::uint8_t> image;  ///< Contents, used instead of `found`.
  std::vector<Piece> pieces;
};

/// A place in source; file is a text id of Symbols. 0 if unknown.
struct SourceLine {
  std::uint32_t file = 0;
  std::uint32_t line = 0;

  bool operator==(const SourceLine&) const = default;
};

/// A function that contains an address.
struct CodeFrame {
  std::uint32_t name = 0;  ///< A text id; 0 if unknown.
  SourceLine line;         ///< The line of the address, or of the inlined call that leads to it.
  bool inlined = false;    ///< Inlined into the next frame.
};

class Symbols : public CodeMap {
 public:
  /// Returns the name for FunctionRef::id, demangled; "lib.so+0x123" if only the bounds are known.
  [[nodiscard]] virtual const std::string& function_name(std::uint32_t id) = 0;
  /// Returns the line of the instruction at `address`.
  [[nodiscard]] virtual SourceLine line_at(TraceeAddr address) = 0;
  /// Returns the frames at `address`, at least one, innermost first. The last one is not inlined.
  [[nodiscard]] virtual const std::vector<CodeFrame>& frames_at(TraceeAddr address) = 0;
  /// Returns the name or file for a text id; empty for 0.
  [[nodiscard]] virtual const std::string& text(std::uint32_t id) const = 0;
  /// Returns the place in the mapped file, "lib.so+0x123"; empty if no file is mapped.
  [[nodiscard]] virtual std::string module_place(TraceeAddr address) const = 0;
  /// Unwinds a thread with these registers, using the unwind tables of the files found.
  [[nodiscard]] virtual Stack unwind(const arch::cpu::DwarfRegisters& registers,
                                     const ReadMemory& memory) = 0;
  /// Returns the reader of variables, which lives as long as this object.
  [[nodiscard]] virtual VariableReader& variables() = 0;
};

struct SymbolsOptions {
  /// Folders that are searched for debug files before /.
  std::vector<std::string> roots;
  /// Names of code outside of files, or where the file has no symbol.
  std::vector<CodeName> made;
};

/// Reads symbols from ELF and DWARF with elfutils: symbol tables and separate debug files by build
/// id, from servers too if DEBUGINFOD_URLS names some. Modules are read on first use.
[[nodiscard]] std::unique_ptr<Symbols> make_elf_symbols(std::vector<LoadedModule> modules,
                                                        const SymbolsOptions& options = {});

}  // namespace backtrail::decoder
