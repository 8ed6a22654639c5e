#pragma once
/// @file
/// A module's DWARF: lines, and functions that were inlined.

#include <cstdint>
#include <string>
#include <vector>

struct Dwfl_Module;

namespace backtrail::decoder {

/// Looks compilation units and functions up in sorted tables of its own, so that programs without
/// .debug_aranges have lines too.
class LineTable {
 public:
  /// The module is borrowed. Without debug information nothing is ever found.
  explicit LineTable(Dwfl_Module* module);
  ~LineTable();
  LineTable(const LineTable&) = delete;
  LineTable& operator=(const LineTable&) = delete;

  struct Place {
    const char* file = nullptr;  ///< nullptr: not known.
    std::uint32_t line = 0;
  };
  [[nodiscard]] Place line_at(std::uint64_t address);

  struct Inlined {
    std::string name;  ///< Mangled where it has such a name.
    Place call;        ///< Where it was inlined.
  };
  /// What was inlined at `address`, outermost first.
  [[nodiscard]] std::vector<Inlined> inlined_at(std::uint64_t address);
  /// The name that DWARF has for the function there; empty: none.
  [[nodiscard]] std::string function_at(std::uint64_t address);

 private:
  struct Tables;
  Tables* tables_;
};

}  // namespace backtrail::decoder
