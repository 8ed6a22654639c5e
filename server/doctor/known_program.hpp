#pragma once
/// @file
/// A short program with every kind of branch, whose run is the same each time: what sources are
/// compared on.

#include "arch/base/address.hpp"

namespace backtrail::server {

/// Runs it. A tracer sees a SIGTRAP before it begins. @return 0, or 1 when it did not compute what
/// it should.
[[nodiscard]] int run_known_program();

/// It is recorded from the first instruction of one function to that of the other. In this
/// process; a process of the same file has them at the same distance from its first mapping.
struct KnownSpan {
  TraceeAddr begin;
  TraceeAddr end;
};
[[nodiscard]] KnownSpan known_span();

}  // namespace backtrail::server
