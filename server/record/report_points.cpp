// SPDX-License-Identifier: Apache-2.0
#include "server/record/report_points.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "server/record/library_function.hpp"

namespace backtrail::server {
namespace {

/// Beginnings of mangled names: constructors of error descriptions, and a function that all deadly
/// signals pass.
constexpr std::array kPoints{std::string_view{"_ZN6__asan12ErrorGenericC"},
                             std::string_view{"_ZN7__ubsan12ScopedReportC"},
                             std::string_view{"_ZN6__tsan16ScopedReportBaseC"},
                             std::string_view{"_ZN6__msan9ReportUMRE"},
                             std::string_view{"_ZN11__sanitizer23StartReportDeadlySignalE"},
                             std::string_view{"_ZN11__sanitizer11CheckFailedE"}};
/// Used if the symbol table was removed.
constexpr std::array kExported{
    std::string_view{"__asan_report_"}, std::string_view{"__ubsan_on_report"},
    std::string_view{"_ZN6__tsan8OnReportE"}, std::string_view{"__msan_warning"}};
/// The other kinds of errors have a function each, such as
/// `_ZN6__asan23ReportAllocTypeMismatch...`.
constexpr std::array kFamilies{std::string_view{"_ZN6__asan"}, std::string_view{"_ZN8__hwasan"}};
/// Functions of these families that are not report points: helpers, and functions called from
/// others that are.
constexpr std::array kOthers{std::string_view{"ReportGenericError"},
                             std::string_view{"ReportDeadlySignal"},
                             std::string_view{"ReportGlobalE"}, std::string_view{"ReportStats"}};

template <std::size_t kCount>
bool begins_with_one(std::string_view name, const std::array<std::string_view, kCount>& list) {
  return std::any_of(list.begin(), list.end(),
                     [&](std::string_view begin) { return name.starts_with(begin); });
}

bool is_of_a_family(std::string_view name) {
  for (const std::string_view family : kFamilies) {
    if (!name.starts_with(family)) continue;
    name.remove_prefix(family.size());
    name.remove_prefix(std::min(name.find_first_not_of("0123456789"), name.size()));
    return name.starts_with("Report") && !begins_with_one(name, kOthers);
  }
  return false;
}

bool is_tsan(std::string_view name) {
  return name.starts_with("_ZN6__tsan");
}

}  // namespace

bool is_report_point(std::string_view name) {
  // Parts that compilers split off from functions have a dot in their names.
  if (name.find('.') != std::string_view::npos) return false;
  return begins_with_one(name, kPoints) || is_of_a_family(name);
}

std::vector<TraceeAddr> find_panic_points(const std::string& file, const std::string& path,
                                          std::span<const tracee::MapEntry> maps) {
  std::vector<TraceeAddr> points;
  // rust_begin_unwind, _RNv...7___rustc17rust_begin_unwind
  const auto wanted = [](std::string_view name) { return name.ends_with(kPanicFunction); };
  visit_functions(file, path, maps, wanted,
                  [&](std::string_view /*name*/, TraceeAddr at) { points.push_back(at); });
  return points;
}

std::vector<ReportPoint> find_report_points(const std::string& file, const std::string& path,
                                            std::span<const tracee::MapEntry> maps) {
  std::vector<ReportPoint> points;
  std::vector<ReportPoint> exported;
  const auto wanted = [](std::string_view name) {
    // A function that reports repeatedly at one place would stop the thread each time.
    return is_report_point(name) ||
           (begins_with_one(name, kExported) && !name.ends_with("_noabort"));
  };
  visit_functions(file, path, maps, wanted, [&](std::string_view name, TraceeAddr address) {
    (is_report_point(name) ? points : exported).push_back({address, !is_tsan(name)});
  });
  return points.empty() ? exported : points;
}

}  // namespace backtrail::server
