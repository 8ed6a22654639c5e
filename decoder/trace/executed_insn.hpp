// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// An instruction with the bytes that it had when it was executed.

#include <array>
#include <cstdint>
#include <span>

#include "arch/insn.hpp"

namespace backtrail::decoder {

struct ExecutedInsn {
  std::array<std::uint8_t, arch::kMaxInsnBytes> bytes{};
  arch::InsnFacts facts;  ///< Known.

  [[nodiscard]] std::span<const std::uint8_t> view() const {
    return std::span{bytes}.first(facts.length);
  }
};

}  // namespace backtrail::decoder
