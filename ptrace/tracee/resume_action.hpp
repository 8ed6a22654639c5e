// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Describes how a thread is to be resumed.

#include "arch/base/address.hpp"

namespace backtrail::tracee {

enum class ResumeKind : unsigned char {
  kContinue,
  kStep,       ///< One instruction.
  kRangeStep,  ///< Step while range_begin <= pc < range_end.
  kStop,       ///< Non-stop only: stop the thread; it reports kStopped.
};

struct ResumeAction {
  ResumeKind kind = ResumeKind::kContinue;
  int signal = 0;  ///< Linux number to deliver; 0 = none.
  TraceeAddr range_begin{};
  TraceeAddr range_end{};
};

}  // namespace backtrail::tracee
