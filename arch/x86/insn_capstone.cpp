// SPDX-License-Identifier: Apache-2.0
#include <capstone/capstone.h>

#include "arch/x86/insn_length.hpp"

namespace backtrail::arch::x86 {
namespace {

/// A handle with an instruction buffer. Threads must not share a handle.
class Engine {
 public:
  explicit Engine(cs_mode mode) {
    if (cs_open(CS_ARCH_X86, mode, &handle_) != CS_ERR_OK) {
      handle_ = 0;
      return;
    }
    insn_ = cs_malloc(handle_);
  }
  ~Engine() {
    if (insn_ != nullptr) cs_free(insn_, 1);
    if (handle_ != 0) cs_close(&handle_);
  }
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  std::uint8_t length(std::span<const std::uint8_t> bytes) {
    if (insn_ == nullptr) return 0;
    const std::uint8_t* data = bytes.data();
    std::size_t size = bytes.size();
    std::uint64_t address = 0;
    if (!cs_disasm_iter(handle_, &data, &size, &address, insn_)) return 0;
    return static_cast<std::uint8_t>(insn_->size);
  }

 private:
  csh handle_ = 0;
  cs_insn* insn_ = nullptr;
};

/// Returns true for prefixes that select instructions in the 0F maps, and for 67, with which
/// Capstone accepts invalid ones.
bool has_selecting_prefix(const Opcode& opcode) {
  return opcode.operand_size || opcode.address_size || opcode.repeat || opcode.repeat_not_equal;
}

}  // namespace

std::uint8_t capstone_length(Isa isa, std::span<const std::uint8_t> bytes) {
  if (isa == Isa::kI386) {
    thread_local Engine engine32{CS_MODE_32};
    return engine32.length(bytes);
  }
  thread_local Engine engine64{CS_MODE_64};
  return engine64.length(bytes);
}

bool capstone_is_wrong_about(const Opcode& opcode) {
  if (opcode.lock) return true;  // Capstone accepts instructions that LOCK makes illegal.
  switch (opcode.map) {
    case OpcodeMap::kPrimary:
      // Wrong immediates: RET imm16 with REX.W, PUSH imm16 with F2 or F3. Accepted but invalid: MOV
      // to CS, MOV with segment registers 6 and 7.
      return opcode.byte == 0xc2 || (opcode.byte == 0x68 && opcode.operand_size) ||
             opcode.byte == 0x8c || opcode.byte == 0x8e;
    case OpcodeMap::kSecondary:
      // Capstone omits the ModRM byte of UD0 and UD1. It ignores prefixes that select no
      // instruction (66 0F 53 becomes 0F 53, where the CPU raises #UD), and in some orders even
      // those that do: EXTRQ and INSERTQ lose their two immediates.
      return opcode.byte == 0xff || opcode.byte == 0xb9 || has_selecting_prefix(opcode);
    case OpcodeMap::kTertiary:
      return has_selecting_prefix(opcode);
    case OpcodeMap::kVector:
      return true;  // Capstone knows AVX only, and returns wrong lengths for some EVEX encodings.
  }
  return false;
}

}  // namespace backtrail::arch::x86
