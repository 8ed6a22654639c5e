// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/values_text.hpp"

#include <algorithm>
#include <cstdint>

#include <fmt/format.h>

#include "decoder/report/clean_text.hpp"

namespace backtrail::decoder {
namespace {

/// Largest level that is indented further.
constexpr std::uint32_t kMostIndent = 40;

std::string value_of(const Variable& variable) {
  return variable.value ? printable(*variable.value) : "?";
}

std::string frame_text(const ReportStackFrame& frame) {
  if (frame.is_handler_return) return "(a signal handler, called here:)";
  std::string out = printable(frame.frame.function);
  if (out.empty()) out = printable(frame.module_place);
  if (out.empty()) out = fmt::format("{:#x}", frame.address.value());
  // A demangled name has its parameters' types, which the values replace.
  if (frame.variables) {
    out = name_without_parameters(out) + arguments_text(frame.variables->arguments);
  }
  if (!frame.frame.file.empty()) {
    const std::string& file = frame.frame.file;
    out += fmt::format(" at {}:{}", printable(file.substr(file.rfind('/') + 1)), frame.frame.line);
  }
  if (frame.frame.inlined) out += "  (inlined)";
  return out;
}

}  // namespace

std::string arguments_text(const std::vector<Variable>& arguments) {
  std::string out = "(";
  for (const Variable& one : arguments) {
    out += fmt::format("{}{}={}", out.size() == 1 ? "" : ", ",
                       one.name.empty() ? "_" : printable(one.name), value_of(one));
  }
  return out + ")";
}

std::string name_without_parameters(const std::string& name) {
  if (!name.ends_with(')') && !name.ends_with(") const")) return name;
  // The parameters are the last group of parentheses; types in them may have their own.
  int depth = 0;
  for (std::size_t i = name.rfind(')') + 1; i-- > 0;) {
    if (name[i] == ')') ++depth;
    if (name[i] != '(' || --depth != 0) continue;
    const std::string out = name.substr(0, i);
    return out.empty() || out.ends_with("operator") ? name : out;
  }
  return name;
}

std::string calls_text(const std::vector<ReportCall>& calls) {
  if (calls.empty()) return {};
  std::string out = "  the last calls, with their arguments when called (? is unknown):\n";
  for (const ReportCall& call : calls) {
    out += call.end == CallEnd::kOpen ? "  > " : "    ";
    out.append(std::size_t{2} * std::min(call.level, kMostIndent), ' ');
    const std::string name = printable(call.function);
    out += call.arguments ? name_without_parameters(name) + arguments_text(*call.arguments) : name;
    if (call.result && call.result->value) out += " = " + printable(*call.result->value);
    if (!call.file.empty()) {
      const std::string& file = call.file;
      out += fmt::format("  {}:{}", printable(file.substr(file.rfind('/') + 1)), call.line);
    }
    if (call.begin == CallBegin::kSignal) out += "  (signal handler)";
    out += "\n";
  }
  return out;
}

std::string stack_text(const ReportStack& stack) {
  if (stack.frames.empty()) return {};
  std::string out = "  the stack, with values at the end (? is unknown):\n";
  for (const ReportStackFrame& frame : stack.frames) {
    out += "    " + frame_text(frame) + "\n";
    if (!frame.variables) continue;
    for (const Variable& local : frame.variables->locals) {
      out += fmt::format("        {} = {}\n", local.name.empty() ? "_" : printable(local.name),
                         value_of(local));
    }
  }
  if (stack.left_out != 0) out += fmt::format("    ... {} more frames ...\n", stack.left_out);
  for (const std::string& problem : stack.problems) {
    out += "    no values: " + printable(problem) + "\n";
  }
  return out;
}

}  // namespace backtrail::decoder
