// SPDX-License-Identifier: Apache-2.0
#include "decoder/export/call_names.hpp"

#include <utility>

#include <fmt/format.h>

namespace backtrail::decoder {

std::uint32_t CallNames::add(std::string name, SourceLine line) {
  functions_.push_back({std::move(name), line});
  return static_cast<std::uint32_t>(functions_.size() - 1);
}

std::uint32_t CallNames::of(const Call& call) {
  if (call.function.known()) {
    const auto [place, is_new] = by_id_.try_emplace(call.function.id);
    if (is_new) {
      place->second =
          add(symbols_.function_name(call.function.id), symbols_.line_at(call.function.entry));
    }
    return place->second;
  }
  const auto [place, is_new] = by_address_.try_emplace(call.first);
  if (is_new) {
    std::string name = symbols_.module_place(call.first);
    if (name.empty()) name = fmt::format("{:#x}", call.first.value());
    place->second = add(std::move(name), {});
  }
  return place->second;
}

std::uint32_t CallNames::of_text(const std::string& name) {
  const auto [place, is_new] = by_text_.try_emplace(name);
  if (is_new) place->second = add(name, {});
  return place->second;
}

}  // namespace backtrail::decoder
