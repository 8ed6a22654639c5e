// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Errors as values: cheap to copy, without heap memory.

#include <cstdint>
#include <string>
#include <system_error>

namespace backtrail {

/// Backtrail's errors that have no errno.
enum class TraceErrc {
  kTraceeGone = 1,   ///< The thread or process has ended (ptrace's ESRCH). A normal outcome.
  kUnsupported,      ///< This machine, process or build cannot do it.
  kNotFound,         ///< No such thread, process, breakpoint or object.
  kInvalidArgument,  ///< The caller's value is invalid.
  kBusy,             ///< Held by another user (another tracer, all debug registers in use).
  kNotStopped,       ///< The operation needs a stopped thread, but this one runs.
  kAlreadyEnabled,   ///< Branch tracing is on already.
  kNotEnabled,       ///< Branch tracing is off.
  kOverflow,         ///< Records between two reads were lost or do not connect.
  kUnreadable,       ///< Memory at the address cannot be read.
  kMalformed,        ///< Bytes do not have the documented form.
  kStartupFailed,    ///< The program ended before its first instruction.
};

const std::error_category& trace_category() noexcept;
std::error_code make_error_code(TraceErrc e) noexcept;

/// An error code, the operation that failed, and a number for the place.
struct Error {
  std::error_code code;
  /// Static text naming the operation: "ptrace(PTRACE_ATTACH)", "open /proc/PID/mem".
  const char* operation = "";
  /// A tid, address or offset, depending on the operation.
  std::uint64_t detail = 0;

  /// Returns "operation: message (errno)", for logs and people.
  [[nodiscard]] std::string message() const;
  /// Returns the system's text alone, for people to whom the failed call does not matter; message()
  /// for a TraceErrc.
  [[nodiscard]] std::string reason() const;
  [[nodiscard]] bool is(TraceErrc e) const { return code == make_error_code(e); }
  [[nodiscard]] bool is(std::errc e) const { return code == std::make_error_condition(e); }
};

/// Makes an Error from the current errno.
[[nodiscard]] Error errno_error(const char* operation, std::uint64_t detail = 0);
/// Makes an Error from an errno value.
[[nodiscard]] Error errno_error(int errno_value, const char* operation, std::uint64_t detail = 0);
[[nodiscard]] Error make_error(TraceErrc e, const char* operation, std::uint64_t detail = 0);

}  // namespace backtrail

template <>
struct std::is_error_code_enum<backtrail::TraceErrc> : std::true_type {};
