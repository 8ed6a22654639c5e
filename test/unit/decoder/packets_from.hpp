// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Makes packets of a trace that begins at 0x1000 in 64-bit code.

#include <cstdint>
#include <vector>

#include "decoder/pt/pt_packets.hpp"
#include "test/unit/decoder/flat_code.hpp"

namespace backtrail::test {

/// Calls `write` with a decoder::PacketWriter after the PSB.
template <typename Write>
std::vector<std::uint8_t> from_0x1000(Write write) {
  std::vector<std::uint8_t> packets;
  decoder::PacketState state;
  decoder::PacketWriter writer{state, packets};
  writer.psb();
  writer.mode_exec(arch::Isa::kAmd64);
  writer.fup(TraceeAddr{0x1000});
  writer.psbend();
  write(writer);
  writer.flush();
  return packets;
}

}  // namespace backtrail::test
