// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/program_state.hpp"

namespace backtrail::arch::x86::translate {

ProgramState state_in_superblock(const PcMapEntry& map_entry, const UserRegs& stopped,
                                 const ReadSlot& read) {
  const auto has = [&](StateFlag flag) { return (map_entry.flags & flag) != 0; };
  ProgramState out{.regs = stopped, .pc = map_entry.pc, .log = {}, .flags = map_entry.flags};
  out.log = TraceeAddr{has(kLogInSlot) ? read(Slot::kLog) : stopped[UserReg::kR11]};
  if (has(kTargetInR10)) {
    const std::uint64_t r10 = stopped[UserReg::kR10];
    if (has(kCommitted)) {
      out.pc = TraceeAddr{r10};
    } else {
      out.regs[UserReg::kRsp] = r10;
    }
  }
  if (!has(kR10Live)) out.regs[UserReg::kR10] = read(Slot::kR10);
  if (!has(kR11Live)) out.regs[UserReg::kR11] = read(Slot::kR11);
  if (has(kRcxInSlot)) out.regs[UserReg::kRcx] = read(Slot::kRcx);
  if (has(kRcxPlusOne)) ++out.regs[UserReg::kRcx];
  if (has(kRcxIsPc)) out.regs[UserReg::kRcx] = map_entry.pc.value();
  out.regs[UserReg::kRsp] += static_cast<std::uint64_t>(std::int64_t{map_entry.stack_add});
  return out;
}

ProgramState state_in_dispatch_stub(const PcMapEntry& map_entry, bool saved,
                                    const UserRegs& stopped, const ReadSlot& read) {
  const auto has = [&](StateFlag flag) { return (map_entry.flags & flag) != 0; };
  ProgramState out{
      .regs = stopped, .pc = {}, .log = TraceeAddr{stopped[UserReg::kR11]}, .flags = kCommitted};
  if (has(kTargetInR10)) out.pc = TraceeAddr{stopped[UserReg::kR10]};
  if (has(kRcxInSlot)) out.regs[UserReg::kRcx] = read(Slot::kRcx);
  if (saved) {
    out.log = TraceeAddr{read(Slot::kLog)};
    out.regs[UserReg::kRax] = read(Slot::kRax);
    out.regs[UserReg::kRdx] = read(Slot::kRdx);
    out.regs[UserReg::kRsi] = read(Slot::kRsi);
    out.regs[UserReg::kRdi] = read(Slot::kRdi);
  }
  out.regs[UserReg::kR10] = read(Slot::kR10);
  out.regs[UserReg::kR11] = read(Slot::kR11);
  return out;
}

ProgramState state_behind_handler(const UserRegs& stopped, const ReadSlot& read) {
  ProgramState out{.regs = stopped,
                   .pc = TraceeAddr{stopped[UserReg::kR10]},
                   .log = TraceeAddr{stopped[UserReg::kR11]},
                   .flags = kCommitted};
  out.regs[UserReg::kR10] = read(Slot::kReturnR10);
  out.regs[UserReg::kR11] = read(Slot::kReturnR11);
  out.regs[UserReg::kRcx] = read(frame_slot(FrameField::kRcx));
  return out;
}

}  // namespace backtrail::arch::x86::translate
