// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/values/xsave_bytes.hpp"

#include <array>

#include <gtest/gtest.h>

#include "arch/x86/xsave_convert.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::arch::x86::values {
namespace {

constexpr std::uint64_t kAvx512 = 0xe7;

TEST(XsaveBytes, AreNoLessThanTheHostsLayout) {
  const XsaveLayout layout = host_xsave_layout();
  EXPECT_GE(xsave_bytes(layout.xcr0), layout.size_bytes);
}

TEST(XsaveBytes, GrowWithTheComponents) {
  EXPECT_EQ(xsave_bytes(0), 576U);
  EXPECT_EQ(xsave_bytes(3), 576U);
  EXPECT_EQ(xsave_bytes(7), 832U);
  EXPECT_GE(xsave_bytes(kAvx512), intel_xsave_layout(0x2ff).size_bytes);
  EXPECT_GE(xsave_bytes(kAnyComponents), 11008U);  // with those of AMX
}

TEST(XsaveBytes, OfTheCompactedFormatAreTheirSum) {
  EXPECT_EQ(compacted_xsave_bytes(7), 832U);
  EXPECT_EQ(compacted_xsave_bytes(kAvx512), 832U + 64 + 512 + 1024);
  EXPECT_GE(compacted_xsave_bytes(kAnyComponents), 11008U);
}

TEST(XsaveBytes, ComponentsAreThoseThatTheAreaNames) {
  std::array<std::uint8_t, 1024> area{};
  EXPECT_EQ(components_of(area), kAnyComponents);
  area[kXsaveXcr0Offset] = 7;
  EXPECT_EQ(components_of(area), 7U);
  EXPECT_EQ(components_of({}), kAnyComponents);
}

}  // namespace
}  // namespace backtrail::arch::x86::values
