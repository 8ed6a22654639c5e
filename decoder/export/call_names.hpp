// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Numbers the functions of calls, from 0 on.

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

  /// Returns the number of a call's function. Unknown functions are distinguished by address.
  std::uint32_t of(const Call& call);
  /// Returns the number of a name that belongs to no call.
  std::uint32_t of_text(const std::string& name);

  struct Function {
    std::string name;
    SourceLine line;  ///< Line of its entry.
  };
  /// Functions indexed by number.
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
