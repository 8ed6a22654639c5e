#include "arch/base/log.hpp"

#include <array>
#include <memory>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/dist_sink.h>
#include <spdlog/sinks/stdout_sinks.h>

namespace backtrail::log {
namespace {

struct Loggers {
  std::shared_ptr<spdlog::sinks::dist_sink_mt> sink =
      std::make_shared<spdlog::sinks::dist_sink_mt>();
  std::array<std::shared_ptr<spdlog::logger>, 5> all;

  Loggers() {
    sink->add_sink(std::make_shared<spdlog::sinks::stderr_sink_mt>());
    constexpr std::array kNames{"arch", "decoder", "ptrace", "server", "rsp"};
    for (std::size_t i = 0; i < all.size(); ++i) {
      all[i] = std::make_shared<spdlog::logger>(kNames[i], sink);
      all[i]->set_level(spdlog::level::warn);
      all[i]->set_pattern("%H:%M:%S.%e %n %l: %v");
      all[i]->flush_on(spdlog::level::trace);
    }
  }
};

Loggers& loggers() {
  static Loggers instance;
  return instance;
}

bool is_level(std::string_view name) {
  return name == "off" || spdlog::level::from_str(std::string{name}) != spdlog::level::off;
}

}  // namespace

spdlog::logger& arch() {
  return *loggers().all[0];
}
spdlog::logger& decoder() {
  return *loggers().all[1];
}
spdlog::logger& ptrace() {
  return *loggers().all[2];
}
spdlog::logger& server() {
  return *loggers().all[3];
}
spdlog::logger& rsp() {
  return *loggers().all[4];
}

Result<void> configure(std::string_view specification) {
  while (!specification.empty()) {
    const std::size_t comma = specification.find(',');
    const std::string_view item = specification.substr(0, comma);
    specification = comma == std::string_view::npos ? "" : specification.substr(comma + 1);
    const std::size_t colon = item.find(':');
    const std::string_view module = colon == std::string_view::npos ? "" : item.substr(0, colon);
    const std::string_view level = colon == std::string_view::npos ? item : item.substr(colon + 1);
    if (!is_level(level)) return fail(TraceErrc::kInvalidArgument, "log level");
    bool found = false;
    for (auto& logger : loggers().all) {
      if (!module.empty() && logger->name() != module) continue;
      logger->set_level(spdlog::level::from_str(std::string{level}));
      found = true;
    }
    if (!found) return fail(TraceErrc::kInvalidArgument, "log module");
  }
  return {};
}

Result<void> to_file(const std::string& path) {
  try {
    auto file = std::make_shared<spdlog::sinks::basic_file_sink_mt>(path);
    file->set_pattern("%H:%M:%S.%e %n %l: %v");
    loggers().sink->set_sinks({std::move(file)});
  } catch (const spdlog::spdlog_ex&) {
    return fail_errno("open log file");
  }
  return {};
}

}  // namespace backtrail::log
