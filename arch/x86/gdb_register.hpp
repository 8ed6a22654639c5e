// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A register as gdb describes it.

#include <cstddef>
#include <cstdint>
#include <string>

namespace backtrail::arch::x86 {

/// A register in gdb's numbering.
struct GdbRegister {
  std::string name;        ///< "rip", "ymm0h", ...
  std::uint32_t bits = 0;  ///< Size on the wire.
  std::string type;        ///< target.xml type: "int64", "code_ptr", "i386_eflags", ...
  std::string group;       ///< target.xml group, or empty.
  std::string feature;     ///< "org.gnu.gdb.i386.core", ...
  std::size_t offset = 0;  ///< In the `g` packet, in bytes.

  [[nodiscard]] std::size_t bytes() const { return bits / 8; }
};

}  // namespace backtrail::arch::x86
