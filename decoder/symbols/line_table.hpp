// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A module's DWARF: lines and inlined functions.

#include <cstdint>
#include <string>
#include <vector>

#include <elfutils/libdw.h>

struct Dwfl_Module;

namespace backtrail::decoder {

/// Looks up units and functions in sorted tables of its own, so that programs without
/// .debug_aranges have lines too.
class LineTable {
 public:
  /// Borrows the module. Without debug information every lookup is empty.
  explicit LineTable(Dwfl_Module* module);
  ~LineTable();
  LineTable(const LineTable&) = delete;
  LineTable& operator=(const LineTable&) = delete;

  struct Place {
    const char* file = nullptr;  ///< Null if unknown.
    std::uint32_t line = 0;
  };
  [[nodiscard]] Place line_at(std::uint64_t address);

  struct Inlined {
    std::string name;  ///< Mangled if the function has a mangled name.
    Place call;        ///< Call site of the inlined function.
  };
  /// Returns the functions inlined at `address`, outermost first.
  [[nodiscard]] std::vector<Inlined> inlined_at(std::uint64_t address);
  /// Returns DWARF's name of the function; empty if there is none.
  [[nodiscard]] std::string function_at(std::uint64_t address);

  /// Returns true if there is debug information about any code.
  [[nodiscard]] bool has_units() const;

  /// The debug entries around an address.
  struct Scopes {
    Dwarf_Die unit{};
    std::vector<Dwarf_Die> dies;  ///< The function, then the blocks and inlined functions within.
    std::uint64_t bias = 0;       ///< Difference between addresses in the process and in the file.
  };
  /// Returns no entries without debug information.
  [[nodiscard]] Scopes scopes_at(std::uint64_t address);
  /// Returns the source files' entries; `dies` are empty.
  [[nodiscard]] std::vector<Scopes> units() const;

 private:
  struct Tables;
  Tables* tables_;
};

}  // namespace backtrail::decoder
