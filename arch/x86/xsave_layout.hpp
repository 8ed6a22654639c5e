// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The layout of the state components in an XSAVE area. Source: SDM vol. 1, "XSAVE Area"; CPUID
/// leaf 0DH.

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace backtrail::arch::x86 {

/// State components (bits of XCR0).
enum class XsaveComponent : std::uint8_t {
  kX87 = 0,
  kSse = 1,
  kAvx = 2,
  kBndRegs = 3,
  kBndCsr = 4,
  kOpmask = 5,
  kZmmHi256 = 6,
  kHi16Zmm = 7,
  kPkru = 9,
};

/// Size of the FXSAVE image at the start of an XSAVE area, and of the header after it.
inline constexpr std::size_t kFxsaveBytes = 512;
inline constexpr std::size_t kXsaveHeaderBytes = 64;
inline constexpr std::size_t kXsaveComponents = 64;

struct XsaveLayout {
  std::uint64_t xcr0 = 3;  ///< Components that the kernel has enabled.
  std::size_t size_bytes = kFxsaveBytes;
  /// Offset of each component in the standard format; 0 if absent. Legacy components are fixed: x87
  /// has bytes 0-159 (which include MXCSR and its mask, though they are not part of it), SSE
  /// 160-415.
  std::array<std::uint32_t, kXsaveComponents> offset{0, 160};
  std::array<std::uint32_t, kXsaveComponents> component_bytes{160, 256};

  [[nodiscard]] bool has(XsaveComponent c) const {
    return ((xcr0 >> static_cast<unsigned>(c)) & 1U) != 0;
  }
  [[nodiscard]] std::uint32_t at(XsaveComponent c) const {
    return offset[static_cast<std::size_t>(c)];
  }
  [[nodiscard]] std::uint32_t bytes(XsaveComponent c) const {
    return component_bytes[static_cast<std::size_t>(c)];
  }
};

/// The EAX and EBX that CPUID leaf 0DH returns for a sub-leaf of 2 or more.
struct XsaveSubleaf {
  std::uint32_t size_bytes = 0;  ///< EAX; 0 if there is no such component.
  std::uint32_t offset = 0;      ///< EBX.
};

/// Returns the layout for the given XCR0. `subleaf` returns the contents of CPUID leaf 0DH.
[[nodiscard]] XsaveLayout make_xsave_layout(
    std::uint64_t xcr0, const std::function<XsaveSubleaf(unsigned component)>& subleaf);

/// Returns the layout of the host CPU (by CPUID and XGETBV, without a system call).
[[nodiscard]] XsaveLayout host_xsave_layout();

/// Returns the layout of Intel CPUs, which gdb up to 13 and lldb assume in core files. Components
/// without a known Intel offset are removed from xcr0.
[[nodiscard]] XsaveLayout intel_xsave_layout(std::uint64_t xcr0);

}  // namespace backtrail::arch::x86
