// SPDX-License-Identifier: Apache-2.0
#include "ptrace/tracee/breakpoint_hit.hpp"

#include <array>
#include <cstdint>

#include "arch/cpu/program_abi.hpp"
#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {

using arch::cpu::kInt3;

std::optional<TraceeAddr> breakpoint_hit(Process& process, TraceeAddr pc) {
  // These instructions raise the exception: INT3, INT1, and INT with the number 3 (SDM vol. 2, "INT
  // n").
  constexpr std::uint8_t kInt1 = 0xf1;
  constexpr std::array<std::uint8_t, 2> kIntN{0xcd, 0x03};
  const TraceeAddr address = pc - 1;
  if (process.breakpoints().contains(address)) return address;
  std::array<std::uint8_t, 1> last{};
  if (process.read_memory(address, last) != last.size()) return std::nullopt;
  if (last[0] == kInt3 || last[0] == kInt1) return std::nullopt;
  // The byte before it may be unreadable.
  std::array<std::uint8_t, 2> bytes{};
  const bool both = process.read_memory(pc - bytes.size(), bytes) == bytes.size();
  if (both && bytes == kIntN) return std::nullopt;
  return address;
}

}  // namespace backtrail::tracee
