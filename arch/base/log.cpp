// SPDX-License-Identifier: Apache-2.0
#include "arch/base/log.hpp"

#include <array>
#include <memory>
#include <optional>
#include <utility>

#include <spdlog/logger.h>
#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace backtrail::log {
namespace {

constinit std::array<Logger, 5> all{Logger{"arch"}, Logger{"decoder"}, Logger{"ptrace"},
                                    Logger{"server"}, Logger{"rsp"}};

constinit std::atomic<std::uint64_t> error_count{0};

/// Returns the sink that all loggers write to.
std::shared_ptr<spdlog::sinks::sink>& sink() {
  static std::shared_ptr<spdlog::sinks::sink> instance =
      std::make_shared<spdlog::sinks::stderr_sink_mt>();
  return instance;
}

constexpr std::array kLevels{std::pair{"trace", Level::kTrace},  std::pair{"debug", Level::kDebug},
                             std::pair{"info", Level::kInfo},    std::pair{"warn", Level::kWarn},
                             std::pair{"warning", Level::kWarn}, std::pair{"error", Level::kError},
                             std::pair{"err", Level::kError},    std::pair{"off", Level::kOff}};

std::optional<Level> level_named(std::string_view name) {
  for (const auto& [word, level] : kLevels) {
    if (word == name) return level;
  }
  return std::nullopt;
}

spdlog::level::level_enum in_spdlog(Level level) {
  switch (level) {
    case Level::kTrace:
      return spdlog::level::trace;
    case Level::kDebug:
      return spdlog::level::debug;
    case Level::kInfo:
      return spdlog::level::info;
    case Level::kWarn:
      return spdlog::level::warn;
    case Level::kError:
      return spdlog::level::err;
    case Level::kOff:
      break;
  }
  return spdlog::level::off;
}

}  // namespace

void Logger::write(Level level, const std::string& text) const {
  spdlog::logger logger{name_, sink()};
  logger.set_level(spdlog::level::trace);
  logger.set_pattern("%H:%M:%S.%e %n %l: %v");
  logger.flush_on(spdlog::level::trace);
  logger.log(in_spdlog(level), text);
}

void Logger::count_error() {
  error_count.fetch_add(1, std::memory_order_relaxed);
}

std::uint64_t errors() {
  return error_count.load(std::memory_order_relaxed);
}

Logger& arch() {
  return all[0];
}
Logger& decoder() {
  return all[1];
}
Logger& ptrace() {
  return all[2];
}
Logger& server() {
  return all[3];
}
Logger& rsp() {
  return all[4];
}

Result<void> configure(std::string_view specification) {
  while (!specification.empty()) {
    const std::size_t comma = specification.find(',');
    const std::string_view item = specification.substr(0, comma);
    specification = comma == std::string_view::npos ? "" : specification.substr(comma + 1);
    const std::size_t colon = item.find(':');
    const std::string_view module = colon == std::string_view::npos ? "" : item.substr(0, colon);
    const std::string_view level = colon == std::string_view::npos ? item : item.substr(colon + 1);
    const std::optional<Level> wanted = level_named(level);
    if (!wanted) return fail(TraceErrc::kInvalidArgument, "log level");
    bool found = false;
    for (Logger& logger : all) {
      if (!module.empty() && logger.name() != module) continue;
      logger.set_level(*wanted);
      found = true;
    }
    if (!found) return fail(TraceErrc::kInvalidArgument, "log module");
  }
  return {};
}

Result<void> to_file(const std::string& path) {
  try {
    sink() = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
  } catch (const spdlog::spdlog_ex&) {
    return fail_errno("open log file");
  }
  return {};
}

}  // namespace backtrail::log
