#include "arch/x86/translate/translator.hpp"

#include <algorithm>

#include "arch/x86/translate/builder.hpp"
#include "arch/x86/translate/emitter.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint32_t kSysTgkill = 234;
constexpr std::uint32_t kSigStop = 19;

}  // namespace

const PcRow& Superblock::row_at(std::uint32_t offset) const {
  const auto after =
      std::upper_bound(rows.begin(), rows.end(), offset,
                       [](std::uint32_t value, const PcRow& row) { return value < row.offset; });
  return after == rows.begin() ? rows.front() : *std::prev(after);
}

std::variant<Superblock, Special> translate(const CodeSource& source, TraceeAddr head,
                                            const TranslateOptions& options) {
  return Builder{source, head, options}.build();
}

LandingPad make_landing_pad(TraceeAddr address, TraceeAddr head, TraceeAddr body,
                            TraceeAddr conflict) {
  LandingPad pad;
  Emitter emit{address};
  const auto mark = [&](std::uint8_t more_flags) {
    pad.rows.push_back(
        {.offset = emit.offset(),
         .pc = head,
         .flags = static_cast<std::uint8_t>(kCommitted | kTargetInSlot | more_flags)});
  };
  mark(0);
  emit.store(Slot::kScratch, Gpr::kRcx);
  mark(kRcxInSlot);
  emit.load(Gpr::kRcx, Slot::kTarget);
  emit.move(Gpr::kR10, 0 - head.value());
  emit.bytes({0x4a, 0x8d, 0x0c, 0x11});  // lea rcx, [rcx+r10]
  emit.bytes({0xe3});                    // jrcxz
  const std::uint32_t matches = emit.open_rel8();
  emit.load(Gpr::kRcx, Slot::kScratch);
  mark(0);
  pad.conflict_link = emit.jump(conflict);
  emit.bind8(matches);
  mark(kRcxInSlot);
  emit.load(Gpr::kRcx, Slot::kScratch);
  mark(0);
  pad.body_link = emit.jump(body);
  pad.code = emit.take();
  return pad;
}

MissRoutine make_miss_routine(TraceeAddr address) {
  MissRoutine routine;
  Emitter emit{address};
  emit.store(Slot::kRax, Gpr::kRax);
  emit.store(Slot::kRcx, Gpr::kRcx);
  emit.store(Slot::kRdx, Gpr::kRdx);
  emit.store(Slot::kRsi, Gpr::kRsi);
  emit.store(Slot::kRdi, Gpr::kRdi);
  emit.store(Slot::kLog, Gpr::kR11);
  routine.saved_at = emit.offset();
  emit.load32(Gpr::kRdi, Slot::kProcessId);
  emit.load32(Gpr::kRsi, Slot::kThreadId);
  emit.move(Gpr::kRdx, kSigStop);
  emit.move(Gpr::kRax, kSysTgkill);
  emit.bytes({0x0f, 0x05});
  routine.stopped_at = emit.offset();
  // Not reached as long as the tracer is there: try again.
  emit.bytes({0xeb});
  const std::uint32_t again = emit.open_rel8();
  routine.code = emit.take();
  routine.code[again] = static_cast<std::uint8_t>(routine.saved_at - (again + 1));
  return routine;
}

}  // namespace backtrail::arch::x86::translate
