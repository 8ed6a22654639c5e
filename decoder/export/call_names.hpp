#pragma once
/// @file
/// Functions of calls by small numbers.

#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

#include "decoder/calls/call.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

class CallNames {
 public:
  explicit CallNames(Symbols& symbols) : symbols_{symbols} {}

  /// The number of a call's function; functions nobody knows are told apart by address.
  std::uint32_t of(const Call& call);
  /// A number for a name that is no call's.
  std::uint32_t of_text(const std::string& name);

  struct Function {
    std::string name;
    SourceLine line;  ///< Of its entry.
  };
  /// By number.
  [[nodiscard]] const std::vector<Function>& functions() const { return functions_; }

 private:
  std::uint32_t add(std::string name, SourceLine line);

  Symbols& symbols_;
  std::unordered_map<std::uint32_t, std::uint32_t> by_id_;
  std::unordered_map<TraceeAddr, std::uint32_t> by_address_;
  std::unordered_map<std::string, std::uint32_t> by_text_;
  std::vector<Function> functions_;
};

}  // namespace backtrail::decoder
