// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A program of a few bytes whose functions have letters as names, and records of its behaviour.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>

#include "decoder/calls/code_map.hpp"
#include "decoder/trace/code_reader.hpp"
#include "decoder/trace/record.hpp"

namespace backtrail::test {

/// Functions a, b, c, ... of 0x100 bytes each, from 0x1000 on. The low byte of an address
/// determines the instruction: 0x1n is a call, 0x3n an indirect jump, 0x4n a return, 0x5n a system
/// call. p is a stub; x, y and z switch stacks.
class LetterProgram final : public decoder::CodeReader, public decoder::CodeMap {
 public:
  [[nodiscard]] arch::Isa isa() const override { return arch::Isa::kAmd64; }
  std::size_t read_code(TraceeAddr address, std::span<std::uint8_t> out) override {
    constexpr std::array<std::uint8_t, 5> kCall{0xe8, 0, 0, 0, 0};
    constexpr std::array<std::uint8_t, 2> kJump{0xff, 0xe0};
    constexpr std::array<std::uint8_t, 1> kReturn{0xc3};
    constexpr std::array<std::uint8_t, 2> kSystemCall{0x0f, 0x05};
    if (address.value() >= 0xa000) return 0;
    std::fill(out.begin(), out.end(), std::uint8_t{0x90});
    const auto put = [&](std::span<const std::uint8_t> code) {
      std::copy_n(code.begin(), std::min(code.size(), out.size()), out.begin());
    };
    switch (address.value() >> 4U & 0xfU) {
      case 1:
        put(kCall);
        break;
      case 3:
        put(kJump);
        break;
      case 4:
        put(kReturn);
        break;
      case 5:
        put(kSystemCall);
        break;
      default:
        break;
    }
    return out.size();
  }
  decoder::FunctionRef at(TraceeAddr address) override {
    const std::uint64_t value = address.value();
    if (value < 0x1000 || value >= 0x2a00) return {};
    const auto id = static_cast<std::uint32_t>((value - 0x1000) / 0x100 + 1);
    const auto name = static_cast<char>('a' + id - 1);
    using enum decoder::StackSwitch;
    return {id, TraceeAddr{value & ~0xffULL}, name == 'p',
            name == 'x'   ? kLeaves
            : name == 'y' ? kGoesOn
            : name == 'z' ? kSwaps
                          : kNone};
  }
};

/// Returns the address at `offset` in function `name`.
inline TraceeAddr in(char name, std::uint64_t offset = 0) {
  return TraceeAddr{0x1000 + static_cast<std::uint64_t>(name - 'a') * 0x100 + offset};
}

inline decoder::Record start(char name) {
  return decoder::gap(decoder::GapReason::kStart, TraceeAddr{}, in(name, 1));
}
inline constexpr std::uint64_t kCallAt = 0x10;
inline constexpr std::uint64_t kBehindCall = 0x15;
inline decoder::Record call(char from, char to) {
  return decoder::branch(in(from, kCallAt), in(to));
}
inline decoder::Record ret(char from, char to) {
  return decoder::branch(in(from, 0x40), in(to, kBehindCall));
}

}  // namespace backtrail::test
