// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/rcx_tests.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kShortJump = 0xeb;
constexpr std::uint8_t kJump = 0xe9;

}  // namespace

void RcxTests::look_up(Policy part) {
  emit_.look_up_rcx(table_.value() + kEntryTableBytes + static_cast<std::uint32_t>(part));
}

void RcxTests::jump_to(OpenJumps& jumps) {
  emit_.bytes({kJump});
  jumps.push_back(emit_.open_rel32());
}

void RcxTests::if_zero_to(OpenJumps& jumps) {
  const std::uint32_t zero = emit_.jump_if_rcx_zero();
  emit_.bytes({kShortJump});
  const std::uint32_t other = emit_.open_rel8();
  emit_.bind8(zero);
  jump_to(jumps);
  emit_.bind8(other);
}

void RcxTests::unless_zero_to(OpenJumps& jumps) {
  const std::uint32_t zero = emit_.jump_if_rcx_zero();
  jump_to(jumps);
  emit_.bind8(zero);
}

void RcxTests::bind(const OpenJumps& jumps) {
  for (const std::uint32_t place : jumps) emit_.bind(place);
}

}  // namespace backtrail::arch::x86::translate
