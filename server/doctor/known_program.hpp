// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Short program with every kind of branch and the same path in each run. Sources are compared on
/// it.

#include "arch/base/address.hpp"

namespace backtrail::server {

/// Runs the program. A tracer sees a SIGTRAP before it begins. @return 0; 1 if the program computed
/// a wrong sum.
[[nodiscard]] int run_known_program();

/// Addresses, in this process, of the two functions between whose first instructions the program is
/// recorded. Another process of this file has them at the same distance from the file's first
/// mapping.
struct KnownSpan {
  TraceeAddr begin;
  TraceeAddr end;
};
[[nodiscard]] KnownSpan known_span();

}  // namespace backtrail::server
