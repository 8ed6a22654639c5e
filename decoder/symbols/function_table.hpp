// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A sorted table of a module's functions by address.

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/calls/code_map.hpp"

namespace backtrail::decoder {

/// A symbol of code, at an address of the module.
struct CodeSymbol {
  std::uint64_t start = 0;
  std::uint64_t size = 0;  ///< 0 if it extends to the next symbol.
  std::string name;
  int rank = 0;  ///< The highest rank at an address gives the name.
  bool stub = false;
  StackSwitch stack_switch = StackSwitch::kNone;
};

struct CodeRange {
  std::uint64_t start = 0;
  std::uint64_t end = 0;
};

class FunctionTable {
 public:
  struct Entry {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
    std::string name;  ///< Empty if only the bounds are known.
    bool stub = false;
    StackSwitch stack_switch = StackSwitch::kNone;
    std::uint32_t owner = 0;  ///< The entry that this is a part of; otherwise its own index.
  };

  FunctionTable() = default;
  /// @param starts  Function starts that may lack a symbol (from unwind tables).
  /// @param code    Executable ranges; symbols outside are ignored.
  FunctionTable(std::vector<CodeSymbol> symbols, std::vector<std::uint64_t> starts,
                std::vector<CodeRange> code);

  /// Returns the function at `address`; null if there is none.
  [[nodiscard]] const Entry* find(std::uint64_t address) const;
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }

 private:
  void add_symbols(std::vector<CodeSymbol> symbols);
  void add_nameless(std::vector<std::uint64_t> starts);
  void find_owners();
  [[nodiscard]] std::uint64_t code_end(std::uint64_t address) const;

  std::vector<CodeRange> code_;
  std::vector<Entry> entries_;
};

}  // namespace backtrail::decoder
