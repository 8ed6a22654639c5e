#pragma once
/// @file
/// From addresses of a process to names and lines.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "arch/x86/dwarf_registers.hpp"
#include "decoder/calls/code_map.hpp"
#include "decoder/corefile/code_names.hpp"
#include "decoder/symbols/stack.hpp"

namespace backtrail::decoder {

/// A file that the process had mapped, or code without a file (the vdso).
struct LoadedModule {
  struct Piece {
    TraceeAddr start;
    TraceeAddr end;
    std::uint64_t file_offset = 0;
  };
  std::string path;                 ///< Its name in the process.
  std::string found;                ///< Where it lies here; empty: it does not.
  std::vector<std::uint8_t> image;  ///< Instead of `found`.
  std::vector<Piece> pieces;
};

/// A place in source; ids are Symbols' own. 0 = not known.
struct SourceLine {
  std::uint32_t file = 0;
  std::uint32_t line = 0;

  bool operator==(const SourceLine&) const = default;
};

/// A function that an address lies in.
struct CodeFrame {
  std::uint32_t name = 0;  ///< A text id; 0: nobody knows.
  SourceLine line;         ///< Where in it: the address itself, or what it has inlined there.
  bool inlined = false;    ///< Into the next one.
};

class Symbols : public CodeMap {
 public:
  /// What FunctionRef::id stands for, demangled; "lib.so+0x123" where only bounds are known.
  [[nodiscard]] virtual const std::string& function_name(std::uint32_t id) = 0;
  /// Of the instruction at `address`.
  [[nodiscard]] virtual SourceLine line_at(TraceeAddr address) = 0;
  /// Innermost first; the last one is not inlined. At least one.
  [[nodiscard]] virtual const std::vector<CodeFrame>& frames_at(TraceeAddr address) = 0;
  /// A name or file by its id; empty for 0.
  [[nodiscard]] virtual const std::string& text(std::uint32_t id) const = 0;
  /// "lib.so+0x123", the place in the file; empty where no file is mapped.
  [[nodiscard]] virtual std::string module_place(TraceeAddr address) const = 0;
  /// The frames of a thread with these registers, by the unwind tables of the files that are found.
  [[nodiscard]] virtual Stack unwind(const arch::x86::DwarfRegisters& registers,
                                     const ReadMemory& memory) = 0;
};

struct SymbolsOptions {
  /// Folders below which debug files are looked for first, as below /.
  std::vector<std::string> roots;
  /// Of code in no file, or in one that has no symbol there.
  std::vector<CodeName> made;
};

/// Symbols from ELF and DWARF by elfutils: symbol tables, separate debug files by build-id, and
/// from servers where DEBUGINFOD_URLS names some. Each module is read when first asked about.
[[nodiscard]] std::unique_ptr<Symbols> make_elf_symbols(std::vector<LoadedModule> modules,
                                                        const SymbolsOptions& options = {});

}  // namespace backtrail::decoder
