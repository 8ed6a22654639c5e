// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The bits of QThreadOptions. Source: GDB manual, "General Query Packets".

namespace backtrail::server::handlers {

inline constexpr unsigned kThreadOptionClone = 1;
inline constexpr unsigned kThreadOptionExit = 2;
inline constexpr unsigned kAllThreadOptions = kThreadOptionClone | kThreadOptionExit;

}  // namespace backtrail::server::handlers
