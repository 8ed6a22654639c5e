// SPDX-License-Identifier: Apache-2.0
#include "decoder/report/thread_stack.hpp"

#include <array>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder {

Stack thread_stack(const CoreFile& core, CodeReader& code, Symbols& symbols,
                   const CoreThread& thread, const ThreadCalls& traced) {
  const ReadMemory memory = [&](TraceeAddr address, std::span<std::uint8_t> out) {
    const std::size_t count = core.read(address, out);
    return count == out.size() ? count : code.read_code(address, out);
  };
  arch::cpu::DwarfRegisters registers = arch::cpu::dwarf_registers(thread.user, core.isa());
  Stack stack = symbols.unwind(registers, memory);
  const bool just_arrived = traced.last && traced.last->kind == RecordKind::kBranch &&
                            traced.last->to == thread.user.pc();
  if (stack.frames.size() != 1 || stack.end != StackEnd::kNoUnwindInfo || !just_arrived ||
      traced.open.empty()) {
    return stack;
  }
  const std::size_t word = core.isa() == arch::Isa::kAmd64 ? 8 : 4;
  std::array<std::uint8_t, 8> bytes{};
  if (memory(thread.user.sp(), std::span{bytes}.first(word)) != word) return stack;
  const std::uint64_t back = load_le<std::uint64_t>(bytes, 0);
  if (back == 0 || TraceeAddr{back} != traced.open.back().return_address) return stack;
  registers.pc() = back - 1;  // An address within the call instruction.
  registers.sp() += word;
  Stack rest = symbols.unwind(registers, memory);
  rest.frames.front().pc = TraceeAddr{back};
  rest.frames.front().is_return = true;
  rest.frames.insert(rest.frames.begin(), stack.frames.front());
  return rest;
}

}  // namespace backtrail::decoder
