// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Assertions about Backtrail's own code, enabled in every build. No input from a client, the
/// kernel or a traced program may fail one.

namespace backtrail {

/// Prints the condition and its place to stderr, and aborts.
[[noreturn]] void check_failed(const char* condition, const char* file, int line) noexcept;

}  // namespace backtrail

// The name of the file has no folder: builds in different folders are the same bytes.
#define BT_CHECK(condition)           \
  ((condition) ? static_cast<void>(0) \
               : ::backtrail::check_failed(#condition, __FILE_NAME__, __LINE__))
