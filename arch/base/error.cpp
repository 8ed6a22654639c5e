// SPDX-License-Identifier: Apache-2.0
#include "arch/base/error.hpp"

#include <cerrno>

#include <fmt/format.h>

namespace backtrail {
namespace {

class TraceCategory final : public std::error_category {
 public:
  [[nodiscard]] const char* name() const noexcept override { return "backtrail"; }
  [[nodiscard]] std::string message(int value) const override {
    switch (static_cast<TraceErrc>(value)) {
      case TraceErrc::kTraceeGone:
        return "the thread or process is gone";
      case TraceErrc::kUnsupported:
        return "not supported here";
      case TraceErrc::kNotFound:
        return "not found";
      case TraceErrc::kInvalidArgument:
        return "invalid argument";
      case TraceErrc::kBusy:
        return "in use by somebody else";
      case TraceErrc::kNotStopped:
        return "the thread is running";
      case TraceErrc::kAlreadyEnabled:
        return "branch tracing is already enabled";
      case TraceErrc::kNotEnabled:
        return "branch tracing is not enabled";
      case TraceErrc::kOverflow:
        return "branch records were lost";
      case TraceErrc::kUnreadable:
        return "memory cannot be read";
      case TraceErrc::kMalformed:
        return "malformed data";
      case TraceErrc::kStartupFailed:
        return "the program ended during start-up";
    }
    return "unknown error";
  }
};

}  // namespace

const std::error_category& trace_category() noexcept {
  static const TraceCategory category;
  return category;
}

std::error_code make_error_code(TraceErrc e) noexcept {
  return {static_cast<int>(e), trace_category()};
}

std::string Error::message() const {
  return code.category() == trace_category()
             ? fmt::format("{}: {}", operation, code.message())
             : fmt::format("{}: {} ({})", operation, code.message(), code.value());
}

std::string Error::reason() const {
  return code.category() == trace_category() ? message() : code.message();
}

Error errno_error(int errno_value, const char* operation, std::uint64_t detail) {
  return Error{std::error_code{errno_value, std::system_category()}, operation, detail};
}

Error errno_error(const char* operation, std::uint64_t detail) {
  return errno_error(errno, operation, detail);
}

Error make_error(TraceErrc e, const char* operation, std::uint64_t detail) {
  return Error{make_error_code(e), operation, detail};
}

}  // namespace backtrail
