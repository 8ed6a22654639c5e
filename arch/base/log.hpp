#pragma once
/// @file
/// Logging by module: `log::ptrace().debug("tid={} op={}", tid, op)`. spdlog does the work.

#include <string>
#include <string_view>

#include <spdlog/spdlog.h>

#include "arch/base/result.hpp"

namespace backtrail::log {

/// Loggers, one a folder and one for packets. Everything is off below `warn` until configured.
spdlog::logger& arch();
spdlog::logger& decoder();
spdlog::logger& ptrace();
spdlog::logger& server();
spdlog::logger& rsp();

/// Applies "LEVEL" or "module:level,module:level" (levels: error warn info debug trace off).
/// Error kInvalidArgument when a module or level is unknown.
Result<void> configure(std::string_view specification);

/// Sends all logging to a file instead of stderr.
Result<void> to_file(const std::string& path);

}  // namespace backtrail::log
