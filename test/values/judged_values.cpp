// SPDX-License-Identifier: Apache-2.0
#include "judged_values.hpp"

#include <chrono>
#include <ctime>

#include <Zydis/Zydis.h>
#include <fmt/format.h>

#include "arch/disassemble.hpp"

namespace backtrail::decoder::values {
namespace {

/// A general register that an instruction reads, with the bits that it reads.
struct Read {
  Slot slot;
  std::uint64_t bits;
};

std::vector<Read> reads_of(const ExecutedInsn& insn_bytes) {
  static const ZydisDecoder decoder = [] {
    ZydisDecoder d;
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    return d;
  }();
  ZydisDecodedInstruction insn;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  std::vector<Read> reads;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder, insn_bytes.bytes.data(),
                                           insn_bytes.facts.length, &insn, operands.data()))) {
    return reads;
  }
  const auto add = [&](ZydisRegister reg, unsigned bits) {
    const ZydisRegister whole = ZydisRegisterGetLargestEnclosing(ZYDIS_MACHINE_MODE_LONG_64, reg);
    if (ZydisRegisterGetClass(whole) != ZYDIS_REGCLASS_GPR64) return;
    const unsigned shift = reg >= ZYDIS_REGISTER_AH && reg <= ZYDIS_REGISTER_BH ? 8 : 0;
    reads.push_back({static_cast<Slot>(ZydisRegisterGetId(whole)), cpu::low_bits(bits) << shift});
  };
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if (operand.type == ZYDIS_OPERAND_TYPE_REGISTER &&
        (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0) {
      add(operand.reg.value, operand.size);
    }
    if (operand.type == ZYDIS_OPERAND_TYPE_MEMORY) {
      add(operand.mem.base, 64);
      add(operand.mem.index, 64);
    }
  }
  return reads;
}

class Judge {
 public:
  Judge(TruthRun& run, HistoryLimits limits)
      : run_{run}, count_{run.steps().size()}, history_{history_of(run, limits)} {}

  Judgement judge() {
    const std::clock_t start = std::clock();
    (void)history_.reg(0, cpu::kRax);
    result_.seconds = static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
    for (std::size_t position = count_ + 1; position > 0; --position) registers(position - 1);
    for (const MemorySample& sample : run_.samples()) memory(sample);
    result_.consistent = history_.consistent();
    result_.horizon = history_.horizon();
    return std::move(result_);
  }

 private:
  void wrong(std::string text) {
    ++result_.wrong_count;
    if (result_.wrong.size() < 20) result_.wrong.push_back(std::move(text));
  }

  void note(std::array<Yield, 4>& yields, std::size_t position, bool known) {
    for (std::size_t i = 0; i < yields.size(); ++i) {
      if (count_ - position > Judgement::kDistances[i]) continue;
      ++yields[i].all;
      yields[i].known += known ? 1 : 0;
    }
  }

  void registers(std::size_t position) {
    const Registers known = history_.registers(position);
    for (Slot slot = 0; slot < cpu::kSlotCount; ++slot) {
      const std::uint64_t truth = run_.reg_at(position, slot);
      result_.compared_bits += static_cast<unsigned>(std::popcount(known[slot].mask));
      if (((truth ^ known[slot].value) & known[slot].mask) == 0) continue;
      wrong(fmt::format("slot {} before step {} of {} at {}: {:#x} of {:#x}, truth {:#x}", slot,
                        position, count_,
                        position < count_ ? run_.steps()[position].pc : TraceeAddr{},
                        known[slot].value, known[slot].mask, truth));
    }
    if (position == count_) return;
    const ExecutedInsn* code = run_.steps()[position].code;
    const auto [found, is_new] = reads_.try_emplace(code);
    if (is_new) found->second = reads_of(*code);
    for (const Read& read : found->second) {
      note(result_.registers, position, (known[read.slot].mask & read.bits) == read.bits);
    }
  }

  void memory(const MemorySample& sample) {
    std::vector<std::uint8_t> out(sample.size), known(sample.size);
    history_.memory(sample.position, TraceeAddr{sample.address}, out, known);
    const std::uint8_t* truth = run_.bytes(sample);
    bool all = true;
    for (std::size_t i = 0; i < out.size(); ++i) {
      all &= known[i] != 0;
      if (known[i] == 0) continue;
      result_.compared_bits += 8;
      if (out[i] == truth[i]) continue;
      wrong(fmt::format("byte {:#x} before step {} of {} at {}: {:#x}, truth {:#x}",
                        sample.address + i, sample.position, count_,
                        sample.position < count_ ? run_.steps()[sample.position].pc : TraceeAddr{},
                        out[i], truth[i]));
    }
    if (sample.is_operand && sample.position < count_) {
      note(result_.operands, sample.position, all);
    }
  }

  TruthRun& run_;
  std::size_t count_;
  ValueHistory history_;
  Judgement result_;
  std::unordered_map<const ExecutedInsn*, std::vector<Read>> reads_;
};

}  // namespace

void show_unknown(TruthRun& run, HistoryLimits limits, std::size_t steps) {
  const std::size_t count = run.steps().size();
  ValueHistory history = history_of(run, limits);
  for (std::size_t i = count - std::min(count, steps); i < count; ++i) {
    const auto& [pc, next, code] = run.steps()[i];
    std::string line =
        fmt::format("{:6} {} {}", i, pc, arch::disassemble(arch::Isa::kAmd64, pc, code->view()));
    for (const Read& read : reads_of(*code)) {
      const Known known = history.reg(i, read.slot);
      if ((known.mask & read.bits) == read.bits) continue;
      line += fmt::format("  [slot {} mask {:#x}]", read.slot, known.mask);
    }
    fmt::print("{}\n", line);
  }
}

std::string Judgement::text() const {
  std::string text =
      fmt::format("{} wrong of {} bits, {:.2f} s, horizon {}{};", wrong_count, compared_bits,
                  seconds, horizon, consistent ? "" : ", CONTRADICTION");
  for (std::size_t i = 0; i < kDistances.size(); ++i) {
    text += fmt::format(" {}: {:.0f}/{:.0f}", kDistances[i], registers[i].percent(),
                        operands[i].percent());
  }
  return text;
}

Judgement judge(TruthRun& run, HistoryLimits limits) {
  return Judge{run, limits}.judge();
}

}  // namespace backtrail::decoder::values
