// SPDX-License-Identifier: Apache-2.0
#include "ptrace/source/source_kind.hpp"

#include <array>
#include <utility>

namespace backtrail::tracee {
namespace {

constexpr std::array<std::pair<SourceKind, std::string_view>, 6> kNames{{
    {SourceKind::kAuto, "auto"},
    {SourceKind::kPerfPt, "perf-pt"},
    {SourceKind::kPerfBts, "perf-bts"},
    {SourceKind::kLbr, "lbr"},
    {SourceKind::kCache, "cache"},
    {SourceKind::kStep, "step"},
}};

}  // namespace

std::string_view to_string(SourceKind kind) {
  for (const auto& [value, name] : kNames) {
    if (value == kind) return name;
  }
  return "unknown";
}

std::optional<SourceKind> source_kind_from(std::string_view name) {
  for (const auto& [value, text] : kNames) {
    if (text == name) return value;
  }
  return std::nullopt;
}

}  // namespace backtrail::tracee
