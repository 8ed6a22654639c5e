// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The CPU that this is built for, under one name: arch::cpu. Code outside arch/ that depends on it
/// includes the headers of this folder. docs/porting.md says what a CPU must supply for each.

#if !defined(__x86_64__)
#error "there is no folder in arch/ for this CPU; docs/porting.md says what it must hold"
#endif

namespace backtrail::arch {
namespace x86 {}
namespace cpu = x86;
}  // namespace backtrail::arch
