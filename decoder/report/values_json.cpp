// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/values_json.hpp"

#include <fmt/format.h>
#include <boost/json.hpp>

#include "decoder/report/call_words.hpp"
#include "decoder/report/clean_text.hpp"

namespace backtrail::decoder {
namespace {

namespace json = boost::json;

json::string text(std::string_view bytes) {
  return json::string{valid_utf8(bytes)};
}

void add_value(const Variable& variable, json::object& out) {
  out["type"] = text(variable.type);
  if (variable.value) {
    out["value"] = text(*variable.value);
  } else {
    out["value"] = nullptr;
  }
}

json::array variables_json(const std::vector<Variable>& variables) {
  json::array out;
  for (const Variable& variable : variables) {
    json::object one;
    one["name"] = text(variable.name);
    add_value(variable, one);
    out.push_back(std::move(one));
  }
  return out;
}

json::object call_json(const ReportCall& call) {
  json::object out;
  out["depth"] = call.level;
  out["function"] = text(call.function);
  if (!call.file.empty()) {
    out["file"] = text(call.file);
    out["line"] = call.line;
  }
  out["begin"] = name_of(call.begin);
  out["end"] = name_of(call.end);
  out["from"] = call.begin_position;
  out["to"] = call.end_position;
  if (call.arguments) out["arguments"] = variables_json(*call.arguments);
  if (call.result) {
    json::object result;
    add_value(*call.result, result);
    out["result"] = std::move(result);
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

void add_calls_json(const std::vector<ReportCall>& calls, json::object& out) {
  json::array list;
  for (const ReportCall& call : calls) list.push_back(call_json(call));
  out["last_calls"] = std::move(list);
}

void add_stack_json(const ReportStack& stack, json::object& out) {
  json::array frames;
  for (const ReportStackFrame& frame : stack.frames) frames.push_back(frame_json(frame));
  out["stack_frames"] = std::move(frames);
  if (stack.left_out != 0) out["stack_frames_left_out"] = stack.left_out;
  json::array problems;
  for (const std::string& problem : stack.problems) problems.push_back(text(problem));
  if (!problems.empty()) out["no_values"] = std::move(problems);
}

}  // namespace backtrail::decoder
