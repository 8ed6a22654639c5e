// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/xsave_convert.hpp"

#include <array>
#include <cstring>

#include <gtest/gtest.h>

#include "arch/x86/xsave_area.hpp"
#include "test/unit/arch/register_bytes.hpp"

namespace backtrail::arch::x86 {
namespace {

constexpr std::uint64_t kAvx512 = 0xe7;
constexpr std::uint64_t kPkru = 0x200;

std::vector<std::uint8_t> filled_area(const XsaveLayout& layout) {
  std::vector<std::uint8_t> area(layout.size_bytes);
  XsaveWriter writer{layout, area};
  for (const auto component : {XsaveComponent::kSse, XsaveComponent::kAvx, XsaveComponent::kOpmask,
                               XsaveComponent::kZmmHi256, XsaveComponent::kHi16Zmm}) {
    std::vector<std::uint8_t> bytes(layout.bytes(component), static_cast<std::uint8_t>(component));
    EXPECT_TRUE(writer.write(component, 0, bytes));
  }
  return area;
}

TEST(XsaveConvert, SizesAreThoseGdbKnows) {
  EXPECT_EQ(to_intel_layout(amd_layout(kAvx512), filled_area(amd_layout(kAvx512))).size(), 2688U);
  EXPECT_EQ(
      to_intel_layout(amd_layout(kAvx512 | kPkru), filled_area(amd_layout(kAvx512 | kPkru))).size(),
      2696U);
}

TEST(XsaveConvert, ComponentsMoveToIntelsPlaces) {
  const XsaveLayout from = amd_layout(kAvx512);
  const std::vector<std::uint8_t> out = to_intel_layout(from, filled_area(from));
  const XsaveLayout to = core_xsave_layout(out);
  EXPECT_EQ(to.xcr0, kAvx512);
  const XsaveReader reader{to, out};
  for (const auto component : {XsaveComponent::kAvx, XsaveComponent::kOpmask,
                               XsaveComponent::kZmmHi256, XsaveComponent::kHi16Zmm}) {
    std::vector<std::uint8_t> bytes(to.bytes(component));
    reader.read(component, 0, bytes);
    EXPECT_EQ(bytes, std::vector<std::uint8_t>(bytes.size(), static_cast<std::uint8_t>(component)));
  }
}

TEST(XsaveConvert, WhatTheTableDoesNotKnowIsNotClaimed) {
  const XsaveLayout from = amd_layout(kAvx512 | 0x800);
  EXPECT_EQ(core_xsave_layout(to_intel_layout(from, filled_area(from))).xcr0, kAvx512);
}

TEST(XsaveConvert, TheKernelsOwnCoresAreReadByTheirSize) {
  const XsaveLayout from = amd_layout(kAvx512);
  std::vector<std::uint8_t> area = filled_area(from);
  std::memcpy(area.data() + kXsaveXcr0Offset, &kAvx512, sizeof kAvx512);
  EXPECT_EQ(core_xsave_layout(area).at(XsaveComponent::kZmmHi256), 896U);
}

TEST(XsaveConvert, AnFxsaveImageStaysOne) {
  const std::array<std::uint8_t, kFxsaveBytes> image{1, 2, 3};
  const auto out = to_intel_layout(XsaveLayout{}, image);
  EXPECT_TRUE(std::equal(out.begin(), out.end(), image.begin(), image.end()));
}

}  // namespace
}  // namespace backtrail::arch::x86
