// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Error texts of the branch tracing packets. They are gdbserver's: scripts may look for them.

#include <string_view>

namespace backtrail::server::handlers::btrace_error {

inline constexpr std::string_view kNoThread = "No such thread.";
inline constexpr std::string_view kAlreadyEnabled = "Btrace already enabled.";
inline constexpr std::string_view kNotEnabled = "Btrace not enabled.";
inline constexpr std::string_view kInPast =
    "The program is in its past, where gdb's own history cannot begin. Type continue until the "
    "end of the history, then record btrace.";
inline constexpr std::string_view kBadAnnex = "Bad annex.";
inline constexpr std::string_view kOverflow = "Overflow.";
inline constexpr std::string_view kGeneric = "Generic Error.";

}  // namespace backtrail::server::handlers::btrace_error
