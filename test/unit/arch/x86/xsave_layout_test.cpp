// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/xsave_layout.hpp"

#include <gtest/gtest.h>

#include "test/unit/arch/register_bytes.hpp"

namespace backtrail::arch::x86 {
namespace {

TEST(XsaveLayout, WithoutXsaveHasTheLegacyPart) {
  const XsaveLayout layout;
  EXPECT_EQ(layout.xcr0, 3U);
  EXPECT_EQ(layout.size_bytes, 512U);
  EXPECT_TRUE(layout.has(XsaveComponent::kX87));
  EXPECT_TRUE(layout.has(XsaveComponent::kSse));
  EXPECT_FALSE(layout.has(XsaveComponent::kAvx));
  EXPECT_EQ(layout.at(XsaveComponent::kSse), 160U);
  EXPECT_EQ(layout.bytes(XsaveComponent::kSse), 256U);
}

TEST(XsaveLayout, OfIntelCpusHasTheOffsetsDebuggersAssume) {
  const XsaveLayout layout = intel_xsave_layout(0x2e7);
  EXPECT_EQ(layout.at(XsaveComponent::kAvx), 576U);
  EXPECT_EQ(layout.at(XsaveComponent::kOpmask), 1088U);
  EXPECT_EQ(layout.at(XsaveComponent::kZmmHi256), 1152U);
  EXPECT_EQ(layout.at(XsaveComponent::kHi16Zmm), 1664U);
  EXPECT_EQ(layout.at(XsaveComponent::kPkru), 2688U);
  EXPECT_EQ(layout.size_bytes, 2696U);
  EXPECT_EQ(intel_xsave_layout(0xe7).size_bytes, 2688U);
  EXPECT_EQ(intel_xsave_layout(7).size_bytes, 832U);
  EXPECT_EQ(intel_xsave_layout(3).size_bytes, 576U);
}

TEST(XsaveLayout, LeavesOutComponentsTheTableDoesNotKnow) {
  const XsaveLayout layout = intel_xsave_layout(0x602e7);  // AMX
  EXPECT_EQ(layout.xcr0, 0x2e7U);
  EXPECT_EQ(layout.size_bytes, 2696U);
}

TEST(XsaveLayout, TakesOffsetsFromCpuid) {
  const XsaveLayout amd = amd_layout(0xe7);
  EXPECT_EQ(amd.xcr0, 0xe7U);
  EXPECT_EQ(amd.at(XsaveComponent::kOpmask), 832U);
  EXPECT_EQ(amd.at(XsaveComponent::kHi16Zmm), 1408U);
  EXPECT_EQ(amd.bytes(XsaveComponent::kHi16Zmm), 1024U);
  EXPECT_EQ(amd.size_bytes, 2432U);
}

TEST(XsaveLayout, AsksOnlyForEnabledComponents) {
  const XsaveLayout layout = make_xsave_layout(7, [](unsigned component) {
    EXPECT_EQ(component, 2U);
    return XsaveSubleaf{256, 576};
  });
  EXPECT_EQ(layout.size_bytes, 832U);
}

TEST(XsaveLayout, RefusesOffsetsInsideTheHeader) {
  const XsaveLayout layout = make_xsave_layout(7, [](unsigned) { return XsaveSubleaf{256, 512}; });
  EXPECT_EQ(layout.xcr0, 3U);
}

TEST(XsaveLayout, OfThisCpuIsConsistent) {
  const XsaveLayout layout = host_xsave_layout();
  EXPECT_EQ(layout.xcr0 & 3, 3U);
  EXPECT_GE(layout.size_bytes, 512U);
  for (unsigned i = 2; i < kXsaveComponents; ++i) {
    const auto component = static_cast<XsaveComponent>(i);
    if (!layout.has(component)) {
      EXPECT_EQ(layout.at(component), 0U) << i;
      continue;
    }
    EXPECT_GE(layout.at(component), 576U) << i;
    EXPECT_GT(layout.bytes(component), 0U) << i;
    EXPECT_LE(layout.at(component) + layout.bytes(component), layout.size_bytes) << i;
  }
  if (layout.has(XsaveComponent::kAvx)) {
    EXPECT_EQ(layout.at(XsaveComponent::kAvx), 576U);
  }
}

}  // namespace
}  // namespace backtrail::arch::x86
