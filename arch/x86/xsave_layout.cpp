// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/xsave_layout.hpp"

#include <algorithm>

#include <cpuid.h>

namespace backtrail::arch::x86 {
namespace {

constexpr unsigned kXsaveLeaf = 0xd;
constexpr std::uint64_t kLegacyComponents = 3;

struct CpuidResult {
  std::uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

CpuidResult cpuid(unsigned leaf, unsigned subleaf) {
  CpuidResult r;
  if (__get_cpuid_count(leaf, subleaf, &r.eax, &r.ebx, &r.ecx, &r.edx) == 0) return {};
  return r;
}

std::uint64_t read_xcr0() {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (std::uint64_t{high} << 32) | low;
}

bool kernel_enabled_xsave() {
  constexpr std::uint32_t kOsxsave = std::uint32_t{1} << 27;
  return (cpuid(1, 0).ecx & kOsxsave) != 0;
}

}  // namespace

XsaveLayout make_xsave_layout(std::uint64_t xcr0,
                              const std::function<XsaveSubleaf(unsigned component)>& subleaf) {
  XsaveLayout layout;
  layout.xcr0 = xcr0 | kLegacyComponents;
  layout.size_bytes = kFxsaveBytes + kXsaveHeaderBytes;
  for (unsigned i = 2; i < kXsaveComponents; ++i) {
    const std::uint64_t bit = std::uint64_t{1} << i;
    if ((layout.xcr0 & bit) == 0) continue;
    const XsaveSubleaf found = subleaf(i);
    if (found.size_bytes == 0 || found.offset < kFxsaveBytes + kXsaveHeaderBytes) {
      layout.xcr0 &= ~bit;  // Not a component of the standard format.
      continue;
    }
    layout.offset[i] = found.offset;
    layout.component_bytes[i] = found.size_bytes;
    layout.size_bytes = std::max(layout.size_bytes, std::size_t{found.offset} + found.size_bytes);
  }
  return layout;
}

XsaveLayout host_xsave_layout() {
  if (!kernel_enabled_xsave()) return {};
  return make_xsave_layout(read_xcr0(), [](unsigned component) {
    const CpuidResult r = cpuid(kXsaveLeaf, component);
    return XsaveSubleaf{r.eax, r.ebx};
  });
}

XsaveLayout intel_xsave_layout(std::uint64_t xcr0) {
  return make_xsave_layout(xcr0, [](unsigned component) -> XsaveSubleaf {
    switch (static_cast<XsaveComponent>(component)) {
      case XsaveComponent::kAvx:
        return {256, 576};
      case XsaveComponent::kBndRegs:
        return {64, 960};
      case XsaveComponent::kBndCsr:
        return {64, 1024};
      case XsaveComponent::kOpmask:
        return {64, 1088};
      case XsaveComponent::kZmmHi256:
        return {512, 1152};
      case XsaveComponent::kHi16Zmm:
        return {1024, 1664};
      case XsaveComponent::kPkru:
        return {8, 2688};
      default:
        return {};
    }
  });
}

}  // namespace backtrail::arch::x86
