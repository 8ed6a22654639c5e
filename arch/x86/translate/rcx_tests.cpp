// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/rcx_tests.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint8_t kShortJump = 0xeb;
constexpr std::uint8_t kJump = 0xe9;

}  // namespace

void RcxTests::compare(Gpr reg, std::uint32_t value) {
  emit_.lea(Gpr::kRcx, Memory::far(reg, static_cast<std::int32_t>(0 - value)));
}

void RcxTests::compare32(Gpr reg, std::uint32_t value) {
  emit_.lea32(Gpr::kRcx, Memory::far(reg, static_cast<std::int32_t>(0 - value)));
}

void RcxTests::look_up(Policy part) {
  const std::uint64_t at = table_.value() + kEntryTableBytes + static_cast<std::uint32_t>(part);
  emit_.load8(Gpr::kRcx, Memory::far(Gpr::kRcx, static_cast<std::int32_t>(at)));
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
