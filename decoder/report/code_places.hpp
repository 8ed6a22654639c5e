#pragma once
/// @file
/// Addresses of the program as a report shows them.

#include <string>
#include <vector>

#include "decoder/report/crash_signature.hpp"
#include "decoder/report/report.hpp"
#include "decoder/symbols/symbols.hpp"
#include "decoder/trace/code_reader.hpp"

namespace backtrail::decoder {

class CodePlaces {
 public:
  /// Both are borrowed.
  CodePlaces(CodeReader& code, Symbols& symbols) : code_{code}, symbols_{symbols} {}

  /// The functions and lines, innermost inlined one first.
  ReportPlace place(TraceeAddr address);
  /// The instruction as text; empty: unreadable.
  std::string instruction(TraceeAddr address);
  /// The function's name; where it has none, the place in its module, or the address.
  std::string function_at(TraceeAddr address);
  /// Appends the functions at an address, innermost first.
  void add_functions(TraceeAddr address, std::vector<SignatureFrame>& out);

 private:
  CodeReader& code_;
  Symbols& symbols_;
};

}  // namespace backtrail::decoder
