#include "ptrace/tracee/breakpoint_hit.hpp"

#include <array>
#include <cstdint>

#include "ptrace/tracee/process.hpp"

namespace backtrail::tracee {

std::optional<TraceeAddr> breakpoint_hit(Process& process, TraceeAddr pc) {
  // The ways to raise the exception: INT3, INT1, and INT with the number 3 (SDM vol. 2, "INT n").
  constexpr std::uint8_t kInt3 = 0xcc;
  constexpr std::uint8_t kInt1 = 0xf1;
  constexpr std::array<std::uint8_t, 2> kIntN{0xcd, 0x03};
  const TraceeAddr address = pc - 1;
  if (process.breakpoints().contains(address)) return address;
  std::array<std::uint8_t, 2> bytes{};
  if (process.read_memory(pc - bytes.size(), bytes) != bytes.size()) return std::nullopt;
  if (bytes == kIntN || bytes[1] == kInt3 || bytes[1] == kInt1) return std::nullopt;
  return address;
}

}  // namespace backtrail::tracee
