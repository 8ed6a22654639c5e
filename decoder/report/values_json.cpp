// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/values_json.hpp"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "decoder/report/clean_text.hpp"

namespace backtrail::decoder {
namespace {

namespace json = boost::json;

json::string text(std::string_view bytes) {
  return json::string{valid_utf8(bytes)};
}

json::array variables_json(const std::vector<Variable>& variables) {
  json::array out;
  for (const Variable& variable : variables) {
    json::object one;
    one["name"] = text(variable.name);
    one["type"] = text(variable.type);
    if (variable.value) {
      one["value"] = text(*variable.value);
    } else {
      one["value"] = nullptr;
    }
    out.push_back(std::move(one));
  }
  return out;
}

json::object frame_json(const ReportStackFrame& frame) {
  json::object out;
  out["address"] = fmt::format("{:#x}", frame.address.value());
  if (!frame.module_place.empty()) out["module"] = text(frame.module_place);
  if (!frame.frame.function.empty()) out["function"] = text(frame.frame.function);
  if (!frame.frame.file.empty()) {
    out["file"] = text(frame.frame.file);
    out["line"] = frame.frame.line;
  }
  if (frame.is_handler_return) out["signal"] = true;
  if (frame.frame.inlined) out["inlined"] = true;
  if (frame.variables) {
    out["arguments"] = variables_json(frame.variables->arguments);
    out["locals"] = variables_json(frame.variables->locals);
  }
  return out;
}

}  // namespace

void add_stack_json(const ReportStack& stack, json::object& out) {
  json::array frames;
  for (const ReportStackFrame& frame : stack.frames) frames.push_back(frame_json(frame));
  out["stack"] = std::move(frames);
  if (stack.left_out != 0) out["stack_left_out"] = stack.left_out;
  json::array problems;
  for (const std::string& problem : stack.problems) problems.push_back(text(problem));
  if (!problems.empty()) out["no_values"] = std::move(problems);
}

}  // namespace backtrail::decoder
