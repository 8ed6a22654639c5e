#pragma once
/// @file
/// Which function of a module an address belongs to: a sorted table made of its symbols.

#include <cstdint>
#include <string>
#include <vector>

#include "decoder/calls/code_map.hpp"

namespace backtrail::decoder {

/// A symbol of code. Addresses are the module's own.
struct CodeSymbol {
  std::uint64_t start = 0;
  std::uint64_t size = 0;  ///< 0: up to the next one.
  std::string name;
  int rank = 0;  ///< Of several at one address the highest gives the name.
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
    std::string name;  ///< Empty: only the bounds are known.
    bool stub = false;
    StackSwitch stack_switch = StackSwitch::kNone;
    std::uint32_t owner = 0;  ///< The entry that this is a part of; its own index if of none.
  };

  FunctionTable() = default;
  /// @param starts  Where functions begin that may have no symbol (from unwind tables).
  /// @param code    Executable ranges; symbols elsewhere are no functions.
  FunctionTable(std::vector<CodeSymbol> symbols, std::vector<std::uint64_t> starts,
                std::vector<CodeRange> code);

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
