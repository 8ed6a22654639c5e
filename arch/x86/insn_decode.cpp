// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstring>
#include <string_view>

#include <cpuid.h>

#include "arch/x86/insn_length.hpp"

namespace backtrail::arch::x86 {
namespace {

/// Returns the sign-extended displacement. `bytes` contain only the displacement.
std::uint64_t displacement(std::span<const std::uint8_t> bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < bytes.size(); ++i) value |= std::uint64_t{bytes[i]} << (8 * i);
  const std::uint64_t sign = std::uint64_t{1} << (8 * bytes.size() - 1);
  return (value ^ sign) - sign;
}

TraceeAddr target_of(Isa isa, const DirectBranch& branch, TraceeAddr pc,
                     std::span<const std::uint8_t> bytes) {
  const auto field = bytes.subspan(std::size_t{branch.length} - branch.displacement_bytes,
                                   branch.displacement_bytes);
  const std::uint64_t target = pc.value() + branch.length + displacement(field);
  if (branch.wraps_at_16_bits) return TraceeAddr{target & 0xffff};
  return TraceeAddr{isa == Isa::kI386 ? target & 0xffffffff : target};
}

/// Returns true for a SYSCALL without prefixes. Recorders of most short programs decode nothing
/// else, and the first use of a disassembler takes a tenth of such a run.
bool is_plain_syscall(Isa isa, const Opcode& opcode) {
  constexpr std::uint8_t kSyscall = 0x05;
  constexpr std::uint8_t kOpcodeBytes = 2;
  return isa == Isa::kAmd64 && opcode.is(OpcodeMap::kSecondary, kSyscall) &&
         opcode.end == kOpcodeBytes;
}

std::uint8_t length_of(Isa isa, NearBranchRule rule, const Opcode& opcode,
                       std::span<const std::uint8_t> bytes) {
  if (is_plain_syscall(isa, opcode)) return opcode.end;
  if (!capstone_is_wrong_about(opcode)) {
    if (const std::uint8_t length = capstone_length(isa, bytes); length != 0) return length;
  }
  return zydis_length(isa, rule, bytes);
}

}  // namespace

InsnFacts decode(Isa isa, NearBranchRule rule, TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  if (bytes.size() > kMaxInsnBytes) bytes = bytes.first(kMaxInsnBytes);
  const std::optional<Opcode> opcode = scan_opcode(isa, bytes);
  if (!opcode) return {};
  InsnFacts facts = classify(*opcode, opcode->modrm);

  // Disassemblers disagree on the size of direct branches, because each follows one vendor.
  const std::optional<DirectBranch> branch = direct_branch(isa, rule, *opcode);
  if (branch && !opcode->lock) {
    if (branch->length > bytes.size()) return {};
    facts.length = branch->length;
    facts.target = target_of(isa, *branch, pc, bytes);
    return facts;
  }
  facts.length = length_of(isa, rule, *opcode, bytes);
  return facts.known() ? facts : InsnFacts{};
}

NearBranchRule host_near_branch_rule() {
  static const NearBranchRule rule = [] {
    unsigned eax = 0;
    std::array<unsigned, 3> vendor{};
    if (__get_cpuid(0, &eax, &vendor[0], &vendor[2], &vendor[1]) == 0) {
      return NearBranchRule::kIntel;
    }
    std::array<char, sizeof(vendor)> text{};
    std::memcpy(text.data(), vendor.data(), sizeof(vendor));
    const std::string_view name{text.data(), text.size()};
    return name == "AuthenticAMD" || name == "HygonGenuine" ? NearBranchRule::kAmd
                                                            : NearBranchRule::kIntel;
  }();
  return rule;
}

unsigned host_cpu_family() {
  unsigned eax = 0;
  std::array<unsigned, 3> unused{};
  if (__get_cpuid(1, &eax, &unused[0], &unused[1], &unused[2]) == 0) return 0;
  constexpr unsigned kExtended = 0xf;
  const unsigned family = eax >> 8U & 0xf;
  return family == kExtended ? family + (eax >> 20U & 0xff) : family;
}

}  // namespace backtrail::arch::x86
