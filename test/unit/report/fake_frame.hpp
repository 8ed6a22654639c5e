// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A frame with the registers and bytes that a test gives it.

#include <cstdint>
#include <map>

#include "decoder/variables/frame_state.hpp"

namespace backtrail::test {

class FakeFrame final : public decoder::FrameState {
 public:
  void set(unsigned number, std::uint64_t value) { set_bits(number, value, ~0ULL); }
  void set_bits(unsigned number, std::uint64_t value, std::uint64_t mask) {
    registers[number] = {value & mask, mask};
  }
  /// Stores a number of `size` bytes.
  void store(std::uint64_t address, std::uint64_t value, std::size_t size) {
    for (std::size_t i = 0; i < size; ++i) {
      memory_bytes[address + i] = static_cast<std::uint8_t>(value >> (8 * i));
    }
  }

  Known reg(unsigned number) override { return registers[number]; }
  Known lane(unsigned number, unsigned lane) override {
    return registers[kFirstVector + 2 * number + lane];
  }
  std::size_t memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto found = memory_bytes.find(address.value() + i);
      if (found == memory_bytes.end()) return i;
      out[i] = found->second;
    }
    return out.size();
  }

  std::map<unsigned, Known> registers;
  std::map<std::uint64_t, std::uint8_t> memory_bytes;
};

}  // namespace backtrail::test
