// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/values/xsave_bytes.hpp"

#include <array>

#include "arch/base/bytes.hpp"
#include "arch/x86/xsave_convert.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86::values {
namespace {

/// More than any CPU's area has.
constexpr std::uint32_t kMostBytes = 16384;
constexpr std::uint32_t kFirstExtended = kFxsaveBytes + kXsaveHeaderBytes;
constexpr std::uint32_t kAvxBytes = 256;
/// Where PKRU, the last component before those of AMX, ends with Intel's offsets. AMD's are lower.
constexpr std::uint32_t kPkruEnd = 2752;

constexpr std::uint64_t bits_to(XsaveComponent last) {
  return (std::uint64_t{2} << static_cast<unsigned>(last)) - 1;
}

/// The sizes of the components in a compacted area, rounded up to their alignment. Source: SDM vol.
/// 1, "XSAVE-Managed State".
constexpr std::array<std::uint32_t, 10> kCompactedBytes{0,  0,   kAvxBytes, 64, 64,
                                                        64, 512, 1024,      0,  64};

}  // namespace

std::uint64_t components_of(std::span<const std::uint8_t> xsave_area) {
  if (xsave_area.size() < kXsaveXcr0Offset + sizeof(std::uint64_t)) return kAnyComponents;
  const auto named = load_le<std::uint64_t>(xsave_area, kXsaveXcr0Offset);
  return named == 0 ? kAnyComponents : named;
}

std::uint32_t xsave_bytes(std::uint64_t components) {
  if ((components & ~bits_to(XsaveComponent::kSse)) == 0) return kFirstExtended;
  if ((components & ~bits_to(XsaveComponent::kAvx)) == 0) return kFirstExtended + kAvxBytes;
  return (components & ~bits_to(XsaveComponent::kPkru)) == 0 ? kPkruEnd : kMostBytes;
}

std::uint32_t compacted_xsave_bytes(std::uint64_t components) {
  constexpr std::uint64_t kTrace = 1U << 8;  // of XSAVES only, of unknown size
  if ((components & (~bits_to(XsaveComponent::kPkru) | kTrace)) != 0) return kMostBytes;
  std::uint32_t bytes = kFirstExtended;
  for (std::size_t i = 0; i < kCompactedBytes.size(); ++i) {
    if ((components >> i & 1) != 0) bytes += kCompactedBytes.at(i);
  }
  return bytes;
}

std::uint32_t signal_frame_bytes(std::uint64_t components) {
  // struct rt_sigframe is aligned to 16 bytes less 8, the XSAVE area above it to 64. A word of
  // four bytes ends the latter.
  constexpr std::uint32_t kFrame = 440;
  constexpr std::uint32_t kPadding = 16 + 64;
  constexpr std::uint32_t kMagic = 4;
  return kFrame + kPadding + xsave_bytes(components) + kMagic;
}

}  // namespace backtrail::arch::x86::values
