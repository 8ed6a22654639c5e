// SPDX-License-Identifier: Apache-2.0
#include "arch/disassemble.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <capstone/capstone.h>

#include "arch/insn.hpp"
#include "arch/x86/insn_length.hpp"

namespace backtrail::arch {
namespace {

/// Returns Capstone's text; empty if it knows no instruction of that length there.
std::string capstone_text(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  csh handle = 0;
  const cs_mode mode = isa == Isa::kI386 ? CS_MODE_32 : CS_MODE_64;
  if (cs_open(CS_ARCH_X86, mode, &handle) != CS_ERR_OK) return {};
  cs_option(handle, CS_OPT_SYNTAX, CS_OPT_SYNTAX_ATT);
  cs_insn* insn = nullptr;
  std::string text;
  if (cs_disasm(handle, bytes.data(), bytes.size(), pc.value(), 1, &insn) == 1) {
    if (insn->size == bytes.size()) {
      text = insn->mnemonic;
      if (insn->op_str[0] != '\0') text += std::string{" "} + insn->op_str;
    }
    cs_free(insn, 1);
  }
  cs_close(&handle);
  return text;
}

}  // namespace

std::string disassemble(Isa isa, TraceeAddr pc, std::span<const std::uint8_t> bytes) {
  if (bytes.empty()) return {};
  const InsnFacts facts = decode_insn(isa, pc, bytes);
  if (facts.known()) {
    bytes = bytes.first(facts.length);
    if (std::string text = capstone_text(isa, pc, bytes); !text.empty()) return text;
    if (std::string text = x86::zydis_text(isa, pc, bytes); !text.empty()) return text;
  }
  bytes = bytes.first(std::min(bytes.size(), kMaxInsnBytes));
  return fmt::format(".byte {:#04x}", fmt::join(bytes, ", "));
}

}  // namespace backtrail::arch
