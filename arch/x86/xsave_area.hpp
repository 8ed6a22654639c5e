// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Reads and writes registers in an XSAVE area (standard format) or a bare FXSAVE image.
///
///   0    fctrl fstat ftag - fop(2) fip(8) fdp(8) mxcsr(4) mask(4)
///   32   st0-7, 16 bytes each
///   160  xmm0-15
///   512  XSTATE_BV(8), rest of the header      absent in an FXSAVE image
///   576  extended components, by the layout's offsets
///
/// A component whose XSTATE_BV bit is clear has its initial values, whatever its bytes are. An area
/// of any length is safe: registers beyond its end read as initial and cannot be written. Source:
/// SDM vol. 1, "XSAVE Area", "XSAVE-Managed State: Initial Configurations".

#include <cstdint>
#include <span>

#include "arch/isa.hpp"
#include "arch/x86/register_source.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86 {

class XsaveReader {
 public:
  /// Borrows both.
  XsaveReader(const XsaveLayout& layout, std::span<const std::uint8_t> area)
      : layout_{layout}, area_{area} {}

  [[nodiscard]] bool in_use(XsaveComponent c) const;
  /// Copies out.size() bytes from `offset` in component `c`.
  void read(XsaveComponent c, std::size_t offset, std::span<std::uint8_t> out) const;
  [[nodiscard]] std::uint32_t mxcsr() const;
  /// Returns the value in gdb's form: the full tag word; for 64-bit programs, fiseg and foseg are
  /// the upper halves of the 64-bit pointers.
  [[nodiscard]] std::uint32_t x87(X87Control control, Isa isa) const;

 private:
  [[nodiscard]] std::uint16_t full_tag_word() const;
  [[nodiscard]] std::uint64_t legacy(std::size_t offset, std::size_t bytes) const;

  const XsaveLayout& layout_;
  std::span<const std::uint8_t> area_;
};

/// Writes registers. A write to a component whose XSTATE_BV bit is clear sets the bit, and gives
/// the rest of the component its initial values. Each method returns false if the area has no room
/// for the register.
class XsaveWriter {
 public:
  /// Borrows both.
  XsaveWriter(const XsaveLayout& layout, std::span<std::uint8_t> area)
      : layout_{layout}, area_{area} {}

  bool write(XsaveComponent c, std::size_t offset, std::span<const std::uint8_t> value);
  /// Clears bits that the CPU lacks (MXCSR_MASK), which the kernel would reject.
  bool set_mxcsr(std::uint32_t value);
  bool set_x87(X87Control control, Isa isa, std::uint32_t value);

 private:
  bool begin_use(XsaveComponent c);
  void put(std::size_t offset, std::size_t bytes, std::uint64_t value);

  const XsaveLayout& layout_;
  std::span<std::uint8_t> area_;
};

}  // namespace backtrail::arch::x86
