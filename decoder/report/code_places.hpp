// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Describes addresses of the program for a report.

#include <string>
#include <vector>

#include "decoder/report/crash_signature.hpp"
#include "decoder/report/report.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

class CodePlaces {
 public:
  /// Borrows both.
  CodePlaces(CodeReader& code, Symbols& symbols) : code_{code}, symbols_{symbols} {}

  /// Returns the functions and lines at `address`, innermost inlined function first.
  ReportPlace place(TraceeAddr address);
  /// Returns the instruction as text; empty if it is unreadable.
  std::string instruction(TraceeAddr address);
  /// Returns the function's name; if it has none, the place in its module, or else the address.
  std::string function_at(TraceeAddr address);
  /// Appends the functions at an address, innermost first.
  void add_functions(TraceeAddr address, std::vector<SignatureFrame>& out);

 private:
  CodeReader& code_;
  Symbols& symbols_;
};

}  // namespace backtrail::decoder
