// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/siginfo32.hpp"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace backtrail::arch::x86 {
namespace {

using Words = std::vector<std::pair<std::size_t, std::uint32_t>>;  // Offset, 32-bit value.

SiginfoBytes from_words(const Words& words) {
  SiginfoBytes bytes{};
  for (const auto& [at, value] : words) {
    for (std::size_t i = 0; i < 4; ++i) {
      bytes[at + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  }
  return bytes;
}

constexpr auto code(std::int32_t value) {
  return static_cast<std::uint32_t>(value);
}

struct Case {
  const char* name;
  Words native;
  Words i386;
};

// Offsets from the C library's headers, compiled for both widths.
const Case all_cases[] = {
    {"kill",
     {{0, 15}, {4, 7}, {8, 0}, {16, 4242}, {20, 1000}},
     {{0, 15}, {4, 7}, {8, 0}, {12, 4242}, {16, 1000}}},
    {"tkill",
     {{0, 6}, {8, code(-6)}, {16, 4242}, {20, 1000}},
     {{0, 6}, {8, code(-6)}, {12, 4242}, {16, 1000}}},
    {"timer",
     {{0, 14}, {8, code(-2)}, {16, 3}, {20, 5}, {24, 0xdeadbeef}},
     {{0, 14}, {8, code(-2)}, {12, 3}, {16, 5}, {20, 0xdeadbeef}}},
    {"sigqueue",
     {{0, 34}, {8, code(-1)}, {16, 1}, {20, 2}, {24, 0x80000001}},
     {{0, 34}, {8, code(-1)}, {12, 1}, {16, 2}, {20, 0x80000001}}},
    {"child",
     {{0, 17}, {8, 1}, {16, 77}, {20, 1000}, {24, 9}, {32, 11}, {40, 12}},
     {{0, 17}, {8, 1}, {12, 77}, {16, 1000}, {20, 9}, {24, 11}, {28, 12}}},
    {"child with negative times",
     {{0, 17}, {8, 1}, {32, code(-1)}, {36, code(-1)}, {40, code(-2)}, {44, code(-1)}},
     {{0, 17}, {8, 1}, {24, code(-1)}, {28, code(-2)}}},
    {"fault", {{0, 11}, {8, 1}, {16, 0xfffff000}}, {{0, 11}, {8, 1}, {12, 0xfffff000}}},
    {"trap", {{0, 5}, {8, 2}, {16, 0x8048000}}, {{0, 5}, {8, 2}, {12, 0x8048000}}},
    {"memory error with its size",
     {{0, 7}, {8, 4}, {16, 0x1000}, {24, 12}},
     {{0, 7}, {8, 4}, {12, 0x1000}, {16, 12}}},
    {"bounds",
     {{0, 11}, {8, 3}, {16, 0x1000}, {32, 0x2000}, {40, 0x3000}},
     {{0, 11}, {8, 3}, {12, 0x1000}, {20, 0x2000}, {24, 0x3000}}},
    {"protection key",
     {{0, 11}, {8, 4}, {16, 0x1000}, {32, 5}},
     {{0, 11}, {8, 4}, {12, 0x1000}, {20, 5}}},
    {"perf",
     {{0, 5}, {8, 6}, {16, 0x1000}, {24, 0x11}, {32, 2}, {36, 1}},
     {{0, 5}, {8, 6}, {12, 0x1000}, {16, 0x11}, {20, 2}, {24, 1}}},
    {"poll", {{0, 29}, {8, 1}, {16, 0x41}, {24, 3}}, {{0, 29}, {8, 1}, {12, 0x41}, {16, 3}}},
    {"poll with a negative band",
     {{0, 29}, {8, 1}, {16, code(-5)}, {20, code(-1)}, {24, 3}},
     {{0, 29}, {8, 1}, {12, code(-5)}, {16, 3}}},
    {"queued input",
     {{0, 40}, {8, code(-5)}, {16, 1}, {24, 3}},
     {{0, 40}, {8, code(-5)}, {12, 1}, {16, 3}}},
    {"input by a signal of its own",
     {{0, 40}, {8, 2}, {16, 1}, {24, 3}},
     {{0, 40}, {8, 2}, {12, 1}, {16, 3}}},
    {"seccomp",
     {{0, 31}, {8, 1}, {16, 0xf7fd0549}, {24, 20}, {28, 0x40000003}},
     {{0, 31}, {8, 1}, {12, 0xf7fd0549}, {16, 20}, {20, 0x40000003}}},
    {"from the kernel", {{0, 11}, {8, 0x80}}, {{0, 11}, {8, 0x80}}},
    {"stop of ptrace",
     {{0, 5}, {8, 0x405}, {16, 100}, {20, 1000}},
     {{0, 5}, {8, 0x405}, {12, 100}, {16, 1000}}},
};

TEST(Siginfo32, ConvertsFromNative) {
  for (const Case& c : all_cases) {
    EXPECT_EQ(siginfo_to_i386(from_words(c.native)), from_words(c.i386)) << c.name;
  }
}

TEST(Siginfo32, ConvertsToNative) {
  for (const Case& c : all_cases) {
    EXPECT_EQ(siginfo_from_i386(from_words(c.i386)), from_words(c.native)) << c.name;
  }
}

TEST(Siginfo32, DropsTheUpperHalfOfPointers) {
  const SiginfoBytes native = from_words({{0, 11}, {8, 1}, {16, 0x1234}, {20, 0x7fff}});
  EXPECT_EQ(siginfo_to_i386(native), from_words({{0, 11}, {8, 1}, {12, 0x1234}}));
}

/// A value that a 32-bit debugger writes back unchanged must not change.
TEST(Siginfo32, RoundTripsForEverySignalAndCode) {
  SiginfoBytes i386{};
  for (std::uint32_t signal = 0; signal <= 65; ++signal) {
    for (std::int32_t si_code = -10; si_code <= 0x90; ++si_code) {
      for (std::size_t i = 12; i < kSiginfoBytes; ++i)
        i386[i] = static_cast<std::uint8_t>(i + signal);
      i386[0] = static_cast<std::uint8_t>(signal);
      for (std::size_t i = 0; i < 4; ++i) {
        i386[8 + i] = static_cast<std::uint8_t>(code(si_code) >> (8 * i));
      }
      const SiginfoBytes native = siginfo_from_i386(i386);
      EXPECT_EQ(siginfo_from_i386(siginfo_to_i386(native)), native) << signal << " " << si_code;
    }
  }
}

}  // namespace
}  // namespace backtrail::arch::x86
