// SPDX-License-Identifier: Apache-2.0
#include "server/handlers/monitor_debug.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include <fmt/format.h>

#include "arch/base/log.hpp"

namespace backtrail::server::handlers {
namespace {

/// A part of the server whose messages can be turned on and off.
struct Component {
  std::string_view name;
  const char* on;  ///< Levels as log::configure takes them.
  const char* off;
};

constexpr std::array kComponents = {
    Component{"all", "debug", "warn"},
    Component{"threads", "ptrace:debug", "ptrace:warn"},
    Component{"remote", "rsp:debug", "rsp:warn"},
    Component{"event-loop", "server:debug", "server:warn"},
};
constexpr Component kGeneral{"", "ptrace:debug,decoder:debug,arch:debug",
                             "ptrace:warn,decoder:warn,arch:warn"};

std::optional<bool> parse_value(std::string_view word) {
  if (word == "on" || word == "1") return true;
  if (word == "off" || word == "0") return false;
  return std::nullopt;
}

DebugAnswer refused(std::string text) {
  return {false, std::move(text)};
}

DebugAnswer junk_after(std::string_view junk, std::string_view command) {
  return refused(fmt::format("Junk '{}' found at end of '{}' command.\n", junk, command));
}

DebugAnswer apply(const char* levels, std::string text) {
  if (!log::configure(levels)) return refused("The server has no such messages.\n");
  return {true, std::move(text)};
}

DebugAnswer set_general(bool on, DebugWording wording) {
  if (wording == DebugWording::kGdbserver13) {
    return apply(on ? kGeneral.on : kGeneral.off,
                 fmt::format("Debug output {}.\n", on ? "enabled" : "disabled"));
  }
  if (on) return apply(kGeneral.on, "General debug output enabled.\n");
  return apply("warn", "All debug output disabled.\n");
}

DebugAnswer set_component(std::string_view name, std::string_view value) {
  const auto* const found = std::find_if(kComponents.begin(), kComponents.end(),
                                         [&](const auto& each) { return each.name == name; });
  if (found == kComponents.end()) {
    return refused(fmt::format("Error: unknown debug option '{}'\n", name));
  }
  const auto on = parse_value(value);
  if (!on) return refused(fmt::format("Invalid value '{}' for 'set debug {}'.\n", value, name));
  return apply(*on ? found->on : found->off,
               fmt::format("Debug output for '{}' {}.\n", name, *on ? "enabled" : "disabled"));
}

}  // namespace

DebugAnswer set_debug(std::span<const std::string_view> words, DebugWording wording) {
  const std::string_view first = words[0];
  if (const auto on = parse_value(first)) {
    if (words.size() > 1) return junk_after(words[1], fmt::format("set debug {}", first));
    return set_general(*on, wording);
  }
  if (words.size() == 1) {
    return refused(fmt::format("Missing value for 'set debug {}' command.\n", first));
  }
  if (words.size() > 2) {
    return junk_after(words[2], fmt::format("set debug {} {}", first, words[1]));
  }
  return set_component(first, words[1]);
}

}  // namespace backtrail::server::handlers
