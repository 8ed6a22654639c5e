// SPDX-License-Identifier: Apache-2.0
#include "server/record/ending.hpp"

#include <charconv>
#include <csignal>
#include <cstdlib>

#include <fmt/format.h>

#include "decoder/report/report.hpp"

namespace backtrail::server {
namespace {

/// Parses "5", "0.5", "90s", "2m".
std::optional<std::chrono::milliseconds> parse_time(const std::string& text) {
  char* end = nullptr;
  double seconds = std::strtod(text.c_str(), &end);
  const std::string_view unit{end};
  if (end == text.c_str() || !(unit.empty() || unit == "s" || unit == "m")) return std::nullopt;
  constexpr double kMinute = 60;
  constexpr double kMost = 365.0 * 24 * 3600;
  if (unit == "m") seconds *= kMinute;
  if (!(seconds > 0 && seconds < kMost)) return std::nullopt;
  return std::chrono::ceil<std::chrono::milliseconds>(std::chrono::duration<double>{seconds});
}

}  // namespace

std::string_view reason_name(EndReason reason) {
  switch (reason) {
    case EndReason::kSignal:
      return "signal";
    case EndReason::kExit:
      return "exit";
    case EndReason::kSanitizer:
      return "sanitizer";
    case EndReason::kLeakCheck:
      return "leak-check";
    case EndReason::kTerminated:
      return "terminated";
    case EndReason::kTimeout:
      return "timeout";
  }
  return "";
}

std::string ending_text(const Ending& ending) {
  switch (ending.reason) {
    case EndReason::kSignal:
      return decoder::signal_name(ending.signal);
    case EndReason::kExit:
      return fmt::format("exit status {}", ending.exit_code);
    case EndReason::kSanitizer:
      return "a sanitizer's report";
    case EndReason::kLeakCheck:
      return "a leak check";
    case EndReason::kTerminated:
      return decoder::signal_name(ending.signal) + " to the recorder";
    case EndReason::kTimeout:
      return "time is up";
  }
  return "";
}

Explained<KeepPolicy> KeepPolicy::parse(std::string_view list) {
  KeepPolicy policy{.signal = false, .sanitizer = false, .timeout = {}};
  constexpr std::string_view kTimeout = "timeout=";
  while (!list.empty()) {
    const std::size_t end = std::min(list.find(','), list.size());
    const std::string_view word = list.substr(0, end);
    list.remove_prefix(std::min(end + 1, list.size()));
    if (word == "signal") {
      policy.signal = true;
    } else if (word == "sanitizer") {
      policy.sanitizer = true;
    } else if (word == "abort") {
      policy.abort = true;
    } else if (word == "exit") {
      policy.exit = true;
    } else if (word == "always") {
      policy.always = true;
    } else if (word.starts_with(kTimeout)) {
      policy.timeout = parse_time(std::string{word.substr(kTimeout.size())});
      if (!policy.timeout) {
        return tl::unexpected{fmt::format("{}: timeout is in seconds, more than 0", word)};
      }
    } else {
      return tl::unexpected{fmt::format(
          "--on {}: not one of signal, sanitizer, abort, exit, timeout=SECONDS, always", word)};
    }
  }
  return policy;
}

bool KeepPolicy::wants(const Ending& ending, bool is_program) const {
  if (always && is_program) return true;
  switch (ending.reason) {
    case EndReason::kSignal:
      return signal || (ending.signal == SIGABRT && (abort || (sanitizer && ending.sanitized)));
    case EndReason::kExit:
      return exit && ending.exit_code != 0;
    case EndReason::kSanitizer:
    case EndReason::kLeakCheck:
      return sanitizer || exit;
    case EndReason::kTerminated:
      return signal || timeout;
    case EndReason::kTimeout:
      return timeout.has_value();
  }
  return false;
}

}  // namespace backtrail::server
