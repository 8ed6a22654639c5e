// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// gdb's registers of x86 programs: names, order, types, and the location of each value. Source:
/// GDB manual, "i386 Features".

#include <vector>

#include "arch/isa.hpp"
#include "arch/x86/gdb_register.hpp"
#include "arch/x86/register_source.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86 {

inline constexpr const char* kFeatureCore = "org.gnu.gdb.i386.core";
inline constexpr const char* kFeatureSse = "org.gnu.gdb.i386.sse";
inline constexpr const char* kFeatureLinux = "org.gnu.gdb.i386.linux";
inline constexpr const char* kFeatureSegments = "org.gnu.gdb.i386.segments";
inline constexpr const char* kFeatureAvx = "org.gnu.gdb.i386.avx";
inline constexpr const char* kFeatureMpx = "org.gnu.gdb.i386.mpx";
inline constexpr const char* kFeatureAvx512 = "org.gnu.gdb.i386.avx512";
inline constexpr const char* kFeaturePkeys = "org.gnu.gdb.i386.pkeys";

struct RegisterEntry {
  GdbRegister gdb;
  RegisterSource source;
};

/// Returns all registers of a process on a CPU with this layout, in gdb's order.
[[nodiscard]] std::vector<RegisterEntry> make_register_table(Isa isa, const XsaveLayout& layout);

}  // namespace backtrail::arch::x86
