// SPDX-License-Identifier: Apache-2.0
#include "decoder/symbols/stack_unwinder.hpp"

#include <array>
#include <cstdlib>
#include <memory>
#include <optional>

#include <elfutils/libdw.h>
#include <elfutils/libdwfl.h>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder {
namespace {

/// Thread id for libdwfl; there is one thread at a time.
constexpr pid_t kThread = 1;

struct FreeFrame {
  void operator()(Dwarf_Frame* frame) const { std::free(frame); }
};
using FrameHandle = std::unique_ptr<Dwarf_Frame, FreeFrame>;

/// Returns the unwind rules for `address`; null if there are none.
FrameHandle rules_at(Dwfl* dwfl, Dwarf_Addr address) {
  Dwfl_Module* module = dwfl_addrmodule(dwfl, address);
  if (module == nullptr) return nullptr;
  for (const auto find : {dwfl_module_eh_cfi, dwfl_module_dwarf_cfi}) {
    Dwarf_Addr bias = 0;
    Dwarf_CFI* cfi = find(module, &bias);
    Dwarf_Frame* frame = nullptr;
    if (cfi != nullptr && dwarf_cfi_addrframe(cfi, address - bias, &frame) == 0) {
      return FrameHandle{frame};
    }
  }
  return nullptr;
}

/// Walks the frames and decides at each one whether its caller is known. libdwfl alone would guess
/// by frame pointers where rules are missing.
class Walk {
 public:
  Walk(Dwfl* dwfl, const ReadMemory& memory) : dwfl_{dwfl}, memory_{memory} {}

  /// Appends frames, beginning with the one that has `registers`.
  void go(const arch::cpu::DwarfRegisters& registers, Stack& out) {
    registers_ = &registers;
    out_ = &out;
    is_first_ = true;
    stopped_at_.reset();
    static constexpr Dwfl_Thread_Callbacks kCallbacks{
        .next_thread = next_thread,
        .get_thread = get_thread,
        .memory_read = read_word,
        .set_initial_registers = set_registers,
        .detach = nullptr,
        .thread_detach = nullptr,
    };
    out.end = StackEnd::kNoUnwindInfo;
    // Attached once: the callbacks find the current walk themselves.
    if (dwfl_pid(dwfl_) == -1 &&
        !dwfl_attach_state(dwfl_, nullptr, kThread, &kCallbacks, nullptr)) {
      return;
    }
    current() = this;
    dwfl_getthread_frames(dwfl_, kThread, take_frame, this);
    current() = nullptr;
  }

  /// The stack pointer of the frame without unwind information; nullopt if there is none.
  [[nodiscard]] std::optional<std::uint64_t> stopped_at() const { return stopped_at_; }

 private:
  /// The walk in progress. libdwfl keeps one argument for its lifetime, which is longer.
  static Walk*& current() {
    thread_local Walk* walk = nullptr;
    return walk;
  }
  static pid_t next_thread(Dwfl* dwfl, void* argument, void** thread) {
    (void)dwfl, (void)argument;
    if (*thread != nullptr) return 0;
    *thread = current();
    return kThread;
  }
  static bool get_thread(Dwfl* dwfl, pid_t tid, void* argument, void** thread) {
    (void)dwfl, (void)tid, (void)argument;
    *thread = current();
    return true;
  }
  static bool set_registers(Dwfl_Thread* thread, void* argument) {
    const auto& values = static_cast<Walk*>(argument)->registers_->values;
    const std::vector<Dwarf_Word> words{values.begin(), values.end()};
    return dwfl_thread_state_registers(thread, 0, static_cast<unsigned>(words.size()),
                                       words.data());
  }
  static bool read_word(Dwfl* dwfl, Dwarf_Addr address, Dwarf_Word* result, void* argument) {
    (void)dwfl, (void)argument;
    const Walk& walk = *current();
    std::array<std::uint8_t, 8> bytes{};
    const bool wide = walk.registers_->isa == arch::Isa::kAmd64;
    const std::size_t size = wide ? 8 : 4;
    if (walk.memory_(TraceeAddr{address}, std::span{bytes}.first(size)) != size) return false;
    *result = wide ? load_le<std::uint64_t>(bytes, 0) : load_le<std::uint32_t>(bytes, 0);
    return true;
  }
  static int take_frame(Dwfl_Frame* state, void* argument) {
    return static_cast<Walk*>(argument)->take(state);
  }

  int take(Dwfl_Frame* state) {
    Dwarf_Addr pc = 0;
    Dwarf_Word sp = 0;
    if (!dwfl_frame_pc(state, &pc, nullptr)) return DWARF_CB_ABORT;
    if (dwfl_frame_reg(state, arch::cpu::DwarfRegisters::sp_number(registers_->isa), &sp) != 0) {
      return DWARF_CB_ABORT;
    }
    StackFrame frame{.pc = TraceeAddr{pc}};
    const bool after_signal = !out_->frames.empty() && out_->frames.back().is_signal_frame;
    frame.is_return = !is_first_ && !after_signal;
    if (frame.is_return && sp <= last_sp_) {
      out_->end = StackEnd::kDamaged;
      return DWARF_CB_ABORT;
    }
    is_first_ = false;
    last_sp_ = sp;
    out_->frames.push_back(frame);
    if (out_->frames.size() == kMostStackFrames) {
      out_->end = StackEnd::kTooDeep;
      return DWARF_CB_ABORT;
    }
    return judge(out_->frames.back(), sp);
  }

  /// Checks what the rules for a frame say about its caller.
  int judge(StackFrame& frame, Dwarf_Word sp) {
    const FrameHandle rules = rules_at(dwfl_, frame.place().value());
    if (!rules) {
      out_->end = StackEnd::kNoUnwindInfo;
      stopped_at_ = sp;
      return DWARF_CB_ABORT;
    }
    bool is_signal_frame = false;
    const int column = dwarf_frame_info(rules.get(), nullptr, nullptr, &is_signal_frame);
    frame.is_signal_frame = is_signal_frame;
    std::array<Dwarf_Op, 3> room{};
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (column < 0 || dwarf_frame_register(rules.get(), column, room.data(), &ops, &count) != 0) {
      out_->end = StackEnd::kNoUnwindInfo;
      return DWARF_CB_ABORT;
    }
    // Holds until the next frame is found.
    const bool has_none = count == 0 && ops == room.data();
    out_->end = has_none ? StackEnd::kOutermost : StackEnd::kUnreadable;
    return has_none ? DWARF_CB_ABORT : DWARF_CB_OK;
  }

  Dwfl* dwfl_;
  const ReadMemory& memory_;
  const arch::cpu::DwarfRegisters* registers_ = nullptr;
  Stack* out_ = nullptr;
  bool is_first_ = true;
  std::uint64_t last_sp_ = 0;
  std::optional<std::uint64_t> stopped_at_;
};

}  // namespace

Stack unwind_stack(Dwfl* dwfl, const arch::cpu::DwarfRegisters& registers,
                   const ReadMemory& memory) {
  Stack out;
  Walk walk{dwfl, memory};
  arch::cpu::DwarfRegisters from = registers;
  for (;;) {
    walk.go(from, out);
    if (!walk.stopped_at() || out.frames.empty()) break;
    // Code without unwind information may be a signal handler's return.
    StackFrame& last = out.frames.back();
    std::array<std::uint8_t, 16> code{};
    std::array<std::uint8_t, arch::cpu::kSignalContextBytes> frame{};
    const std::size_t code_bytes = memory(last.pc, code);
    const std::size_t frame_bytes = memory(TraceeAddr{*walk.stopped_at()}, frame);
    from = arch::cpu::interrupted_registers(registers.isa, std::span{code}.first(code_bytes),
                                            std::span{frame}.first(frame_bytes));
    if (from.values.empty()) break;
    last.is_signal_frame = true;
    last.is_return = false;
  }
  if (out.frames.empty()) out.frames.push_back({.pc = TraceeAddr{from.pc()}});
  return out;
}

}  // namespace backtrail::decoder
