// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/translator.hpp"

#include <algorithm>

#include "arch/x86/opcode.hpp"
#include "arch/x86/program_abi.hpp"
#include "arch/x86/translate/builder.hpp"
#include "arch/x86/translate/emitter.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr std::uint32_t kSysSchedYield = 24;
constexpr std::uint32_t kSysSignalMask = 14;  // rt_sigprocmask
constexpr std::uint32_t kSignalSetBytes = 8;
constexpr std::uint8_t kJump = 0xe9;
constexpr std::uint8_t kHalt = 0xf4;  // privileged: #GP, whatever the program maps
constexpr std::uint8_t kShortJump = 0xeb;
constexpr std::uint8_t kRseqSection = 8;  // of rseq_cs in struct rseq (linux/rseq.h)
/// Number of sched_yield calls while the server works on an answer.
constexpr std::uint32_t kYields = 400;

/// Jumps to be bound to the code that handles an answer.
struct Answers {
  std::vector<std::uint32_t> answered;
  std::vector<std::uint32_t> refused;
};

void subtract_from_rcx(Emitter& emit, int value) {
  emit.lea(Gpr::kRcx, Memory::at(Gpr::kRcx, static_cast<std::int8_t>(-value)));
}

/// Emits one look at a request that the server has taken or may take.
void look_at_request(Emitter& emit, Answers& answers) {
  emit.load(Gpr::kRcx, Slot::kRequest);
  subtract_from_rcx(emit, static_cast<int>(Request::kAnswered));
  answers.answered.push_back(emit.jump_if_rcx_zero());
  subtract_from_rcx(emit,
                    static_cast<int>(Request::kRefused) - static_cast<int>(Request::kAnswered));
  answers.refused.push_back(emit.jump_if_rcx_zero());
}

/// Emits the request and the handling of its answer; `stop` is the offset of the code that stops.
void emit_request(Emitter& emit, std::uint32_t stop, std::uint32_t patience) {
  Answers answers;
  // In an rseq critical section the thread must stop instead: it may be preempted while it waits,
  // and the kernel would not see that it is inside.
  emit.load(Gpr::kRcx, Slot::kRseqArea);
  const std::uint32_t no_area = emit.jump_if_rcx_zero();
  emit.load(Gpr::kRcx, Memory::at(Gpr::kRcx, kRseqSection));
  const std::uint32_t outside = emit.jump_if_rcx_zero();
  emit.bytes({kJump});
  const std::uint32_t inside = emit.open_rel32();
  emit.bind_back(inside, stop);
  emit.bind8(no_area);
  emit.bind8(outside);
  emit.store_value(Memory::of(Slot::kRequest), static_cast<std::uint32_t>(Request::kAsked));
  emit.move(Gpr::kRdx, patience);
  const std::uint32_t wait = emit.offset();
  emit.pause();
  look_at_request(emit, answers);
  emit.lea(Gpr::kRdx, Memory::at(Gpr::kRdx, -1));
  emit.move(Gpr::kRcx, Gpr::kRdx);
  const std::uint32_t too_long = emit.jump_if_rcx_zero();
  emit.jump_back(wait);
  emit.bind8(too_long);
  // Take the request back, unless the server has taken it.
  emit.move(Gpr::kRcx, static_cast<std::uint64_t>(Request::kNone));
  emit.exchange(Memory::of(Slot::kRequest), Gpr::kRcx);
  subtract_from_rcx(emit, static_cast<int>(Request::kAsked));
  answers.refused.push_back(emit.jump_if_rcx_zero());
  subtract_from_rcx(emit, 1);
  answers.answered.push_back(emit.jump_if_rcx_zero());
  subtract_from_rcx(emit, 2);
  answers.refused.push_back(emit.jump_if_rcx_zero());
  // The server may need this CPU, or wait for a thread that does.
  emit.move(Gpr::kRdx, kYields);
  const std::uint32_t taken = emit.offset();
  emit.move(Gpr::kRax, kSysSchedYield);
  emit.bytes({0x0f, 0x05});
  look_at_request(emit, answers);
  emit.lea(Gpr::kRdx, Memory::at(Gpr::kRdx, -1));
  emit.move(Gpr::kRcx, Gpr::kRdx);
  answers.refused.push_back(emit.jump_if_rcx_zero());
  emit.jump_back(taken);
  for (const std::uint32_t place : answers.refused) emit.bind8(place);
  emit.bytes({kJump});
  const std::uint32_t to_stop = emit.open_rel32();
  emit.bind_back(to_stop, stop);
  for (const std::uint32_t place : answers.answered) emit.bind8(place);
  emit.load(Gpr::kRax, Slot::kRax);
  emit.load(Gpr::kRdx, Slot::kRdx);
  emit.load(Gpr::kRsi, Slot::kRsi);
  emit.load(Gpr::kRdi, Slot::kRdi);
  emit.load(Gpr::kRcx, Slot::kRcx);
  emit.load(Gpr::kR11, Slot::kLog);
  emit.jump(Memory::of(Slot::kAnswer));
}

const PcMapEntry& find_entry(const std::vector<PcMapEntry>& pc_map, std::uint32_t offset) {
  const auto after = std::upper_bound(
      pc_map.begin(), pc_map.end(), offset,
      [](std::uint32_t value, const PcMapEntry& map_entry) { return value < map_entry.offset; });
  return after == pc_map.begin() ? pc_map.front() : *std::prev(after);
}

}  // namespace

const PcMapEntry& Superblock::entry_at(std::uint32_t offset) const {
  return find_entry(pc_map, offset);
}

const PcMapEntry& DispatchStub::entry_at(std::uint32_t offset) const {
  return find_entry(pc_map, offset);
}

std::size_t values_recorded(std::span<const ValuePoint> values, std::uint32_t side_exits_at,
                            std::uint32_t offset, const PcMapEntry& map_entry) {
  const bool on_path = offset < side_exits_at;
  const auto is_recorded = [&](const ValuePoint& value) {
    if (value.passed != map_entry.passed) return value.passed < map_entry.passed;
    // Between two branches, addresses ascend.
    if (value.pc != map_entry.pc) return value.pc < map_entry.pc;
    return on_path && value.offset <= offset;
  };
  return static_cast<std::size_t>(std::find_if_not(values.begin(), values.end(), is_recorded) -
                                  values.begin());
}

std::variant<Superblock, UntranslatableReason> translate(const CodeSource& source, TraceeAddr start,
                                                         const TranslateOptions& options) {
  return Builder{source, start, options}.build();
}

IbEntryTest faster_ib_entry_test() {
  return host_near_branch_rule() == NearBranchRule::kAmd ? IbEntryTest::kLoop : IbEntryTest::kJrcxz;
}

TableIndex faster_table_index() {
  static const TableIndex index = [] {
    // AMD's PEXT takes up to 289 cycles before Zen 3 (family 19h).
    constexpr unsigned kZen3 = 0x19;
    const bool is_fast =
        host_near_branch_rule() != NearBranchRule::kAmd || host_cpu_family() >= kZen3;
    return __builtin_cpu_supports("bmi2") != 0 && is_fast ? TableIndex::kMasked
                                                          : TableIndex::kLow16;
  }();
  return index;
}

DispatchStub make_dispatch_stub(TraceeAddr address, std::uint32_t patience) {
  DispatchStub routine;
  Emitter emit{address};
  const auto mark = [&](unsigned flags) {
    routine.pc_map.push_back({.offset = emit.offset(), .flags = static_cast<std::uint8_t>(flags)});
  };
  mark(kCommitted | kTargetInR10 | kRcxInSlot);
  emit.store(Slot::kTarget, Gpr::kR10);
  emit.bytes({kShortJump});
  const std::uint32_t indirect = emit.open_rel8();
  routine.direct_at = emit.offset();
  mark(kCommitted);
  emit.store(Slot::kTarget, Gpr::kR10);
  emit.store(Slot::kRcx, Gpr::kRcx);
  emit.bind8(indirect);
  mark(kCommitted | kRcxInSlot);
  emit.store(Slot::kRax, Gpr::kRax);
  emit.store(Slot::kRdx, Gpr::kRdx);
  emit.store(Slot::kRsi, Gpr::kRsi);
  emit.store(Slot::kRdi, Gpr::kRdi);
  emit.store(Slot::kLog, Gpr::kR11);
  routine.saved_at = emit.offset();
  emit.load(Gpr::kRcx, Slot::kServed);
  const std::uint32_t unserved = emit.jump_if_rcx_zero();
  emit.bytes({kJump});
  const std::uint32_t ask = emit.open_rel32();
  emit.bind8(unserved);
  const std::uint32_t stop = emit.offset();
  emit.load(Gpr::kRcx, Slot::kStopsByFault);
  const std::uint32_t by_trap = emit.jump_if_rcx_zero();
  routine.faults_at = emit.offset();
  emit.bytes({kHalt});
  emit.bind8(by_trap);
  // The kernel unblocks a signal that it forces; to restore the mask, the server must know it.
  emit.load(Gpr::kRdx, Slot::kMaskAt);
  emit.move(Gpr::kRdi, 0);
  emit.move(Gpr::kRsi, 0);
  emit.move(Gpr::kR10, kSignalSetBytes);
  emit.move(Gpr::kRax, kSysSignalMask);
  emit.bytes({0x0f, 0x05});
  emit.load(Gpr::kR10, Slot::kTarget);
  emit.bytes({kInt3});
  routine.stopped_at = emit.offset();
  // Reached only without a server: try again.
  emit.jump_back(routine.saved_at);
  emit.bind(ask);
  emit_request(emit, stop, patience);
  routine.returned_at = emit.offset();
  mark(kCommitted | kTargetInR10);
  const auto copy = [&](Slot to, Slot from) {
    emit.load(Gpr::kRcx, from);
    emit.store(to, Gpr::kRcx);
  };
  copy(Slot::kSegvBlocked, Slot::kReturnSegv);
  copy(Slot::kR10, Slot::kReturnR10);
  copy(Slot::kR11, Slot::kReturnR11);
  copy(Slot::kRcx, frame_slot(FrameField::kRcx));
  emit.jump(Memory::of(Slot::kLanding));
  routine.code = emit.take();
  return routine;
}

}  // namespace backtrail::arch::x86::translate
