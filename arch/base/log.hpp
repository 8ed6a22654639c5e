// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Logging by module: `log::ptrace().debug("tid={} op={}", tid, op)`. spdlog does the writing. This
/// header only decides whether to write, so that files that log compile fast, and programs that do
/// not log start fast.

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "arch/base/result.hpp"

namespace backtrail::log {

enum class Level : std::uint8_t { kTrace, kDebug, kInfo, kWarn, kError, kOff };

class Logger {
 public:
  constexpr explicit Logger(const char* name) : name_{name} {}
  Logger(const Logger&) = delete;
  Logger& operator=(const Logger&) = delete;

  [[nodiscard]] const char* name() const { return name_; }
  [[nodiscard]] bool writes(Level level) const {
    return level >= level_.load(std::memory_order_relaxed);
  }
  void set_level(Level level) { level_.store(level, std::memory_order_relaxed); }

  template <typename... Args>
  void log(Level level, fmt::format_string<Args...> text, Args&&... args) const {
    if (level == Level::kError) count_error();
    if (writes(level)) write(level, fmt::vformat(text, fmt::make_format_args(args...)));
  }
  template <typename... Args>
  void trace(fmt::format_string<Args...> text, Args&&... args) const {
    log(Level::kTrace, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void debug(fmt::format_string<Args...> text, Args&&... args) const {
    log(Level::kDebug, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void info(fmt::format_string<Args...> text, Args&&... args) const {
    log(Level::kInfo, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warn(fmt::format_string<Args...> text, Args&&... args) const {
    log(Level::kWarn, text, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void error(fmt::format_string<Args...> text, Args&&... args) const {
    log(Level::kError, text, std::forward<Args>(args)...);
  }

 private:
  static void count_error();
  void write(Level level, const std::string& text) const;

  const char* name_;
  std::atomic<Level> level_{Level::kWarn};
};

/// The loggers: one for each folder, and one for packets. Levels below `warn` are off until
/// configured.
Logger& arch();
Logger& decoder();
Logger& ptrace();
Logger& server();
Logger& rsp();

/// Returns the number of messages of level `error`, written or not.
[[nodiscard]] std::uint64_t errors();

/// Applies "LEVEL" or "module:level,module:level" (levels: error warn info debug trace off). Error
/// kInvalidArgument: unknown module or level.
Result<void> configure(std::string_view specification);

/// Sends all logging to a file instead of stderr.
Result<void> to_file(const std::string& path);

}  // namespace backtrail::log
