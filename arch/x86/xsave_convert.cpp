// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/xsave_convert.hpp"

#include <algorithm>
#include <cstring>

namespace backtrail::arch::x86 {
namespace {

constexpr std::size_t kBeginOfExtended = kFxsaveBytes + kXsaveHeaderBytes;
constexpr std::size_t kFirstExtended = 2;

std::uint64_t word_at(std::span<const std::uint8_t> area, std::size_t offset) {
  std::uint64_t value = 0;
  if (offset + sizeof value <= area.size()) {
    std::memcpy(&value, area.data() + offset, sizeof value);
  }
  return value;
}

void set_word(std::span<std::uint8_t> area, std::size_t offset, std::uint64_t value) {
  std::memcpy(area.data() + offset, &value, sizeof value);
}

/// The values of AMD's Zen 4 and 5 in leaf 0DH.
XsaveLayout amd_xsave_layout(std::uint64_t xcr0) {
  return make_xsave_layout(xcr0, [](unsigned component) -> XsaveSubleaf {
    switch (static_cast<XsaveComponent>(component)) {
      case XsaveComponent::kAvx:
        return {256, 576};
      case XsaveComponent::kOpmask:
        return {64, 832};
      case XsaveComponent::kZmmHi256:
        return {512, 896};
      case XsaveComponent::kHi16Zmm:
        return {1024, 1408};
      case XsaveComponent::kPkru:
        return {8, 2432};
      default:
        return {};
    }
  });
}

}  // namespace

std::vector<std::uint8_t> to_intel_layout(const XsaveLayout& from,
                                          std::span<const std::uint8_t> area) {
  if (area.size() < kBeginOfExtended) return {area.begin(), area.end()};
  const XsaveLayout to = intel_xsave_layout(from.xcr0);
  std::vector<std::uint8_t> out(to.size_bytes);
  std::copy_n(area.begin(), kBeginOfExtended, out.begin());
  const std::uint64_t in_use = word_at(area, kFxsaveBytes) & to.xcr0;
  set_word(out, kFxsaveBytes, in_use);
  set_word(out, kXsaveXcr0Offset, to.xcr0);
  for (std::size_t i = kFirstExtended; i < kXsaveComponents; ++i) {
    const std::size_t bytes = std::min(from.component_bytes[i], to.component_bytes[i]);
    if (((in_use >> i) & 1U) == 0 || bytes == 0 || from.offset[i] + bytes > area.size()) continue;
    std::copy_n(area.begin() + from.offset[i], bytes, out.begin() + to.offset[i]);
  }
  return out;
}

XsaveLayout core_xsave_layout(std::span<const std::uint8_t> area) {
  if (area.size() < kBeginOfExtended) return {};
  const std::uint64_t xcr0 = word_at(area, kXsaveXcr0Offset);
  XsaveLayout intel = intel_xsave_layout(xcr0);
  if (area.size() >= intel.size_bytes) return intel;
  const XsaveLayout amd = amd_xsave_layout(xcr0);
  return area.size() >= amd.size_bytes ? amd : intel;
}

}  // namespace backtrail::arch::x86
