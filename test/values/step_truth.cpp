// SPDX-License-Identifier: Apache-2.0
#include "step_truth.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <fstream>
#include <sstream>

#include <Zydis/Zydis.h>
#include <elf.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>
#include <bit>
#include <csignal>
#include <cstdlib>

#include "arch/x86/translate/source_insn.hpp"
#include "arch/x86/translate/value_registers.hpp"
#include "arch/x86/xsave_layout.hpp"

namespace backtrail::decoder::values {
namespace {

constexpr std::uint64_t kTrapFlag = 0x100;

const ZydisDecoder& decoder() {
  static const ZydisDecoder made = [] {
    ZydisDecoder d;
    ZydisDecoderInit(&d, ZYDIS_MACHINE_MODE_LONG_64, ZYDIS_STACK_WIDTH_64);
    ZydisDecoderEnableMode(&d, ZYDIS_DECODER_MODE_MPX, ZYAN_FALSE);
    return d;
  }();
  return made;
}

}  // namespace

TruthRun::TruthRun(const std::vector<std::string>& command, const TruthOptions& options) {
  start(command, options.from_trap);
  if (ok()) run(options);
  if (ok()) read_mappings();
}

TruthRun::~TruthRun() {
  if (pid_ == 0) return;
  ::kill(pid_, SIGKILL);
  // An exiting process waits for its tracer, whatever signal it gets.
  ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
  int status = 0;
  while (::waitpid(pid_, &status, __WALL) == pid_ && !WIFEXITED(status) && !WIFSIGNALED(status)) {
    ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
  }
}

void TruthRun::start(const std::vector<std::string>& command, bool from_trap) {
  std::vector<char*> argv;
  argv.reserve(command.size() + 1);
  for (const std::string& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  pid_ = ::fork();
  if (pid_ == 0) {
    ::ptrace(PTRACE_TRACEME, 0, nullptr, nullptr);
    ::execvp(argv[0], argv.data());
    ::_exit(127);
  }
  int status = 0;
  if (pid_ < 0 || ::waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status)) {
    pid_ = 0;
    error_ = "cannot start " + command[0];
    return;
  }
  ::ptrace(PTRACE_SETOPTIONS, pid_, nullptr, PTRACE_O_EXITKILL | PTRACE_O_TRACEEXIT);
  if (!from_trap) return;
  ::ptrace(PTRACE_CONT, pid_, nullptr, nullptr);
  if (::waitpid(pid_, &status, 0) != pid_ || !WIFSTOPPED(status) || WSTOPSIG(status) != SIGTRAP ||
      status >> 16 != 0) {
    error_ = command[0] + " does not trap";
  }
}

TruthRun::Stop TruthRun::step_once(int& signal) {
  if (::ptrace(PTRACE_SINGLESTEP, pid_, nullptr, signal) != 0) return Stop::kGone;
  signal = 0;
  int status = 0;
  if (::waitpid(pid_, &status, __WALL) != pid_) return Stop::kGone;
  if (WIFEXITED(status) || WIFSIGNALED(status)) {
    pid_ = 0;
    return Stop::kGone;
  }
  if (status >> 8 == (SIGTRAP | PTRACE_EVENT_EXIT << 8)) return Stop::kLast;
  if (WSTOPSIG(status) == SIGTRAP) return Stop::kStepped;
  signal = WSTOPSIG(status);
  return Stop::kSignal;
}

bool TruthRun::read_state(General& state) {
  user_regs_struct r{};
  if (::ptrace(PTRACE_GETREGS, pid_, nullptr, &r) != 0) return false;
  state.regs = {r.rax, r.rcx, r.rdx, r.rbx, r.rsp, r.rbp, r.rsi, r.rdi,
                r.r8,  r.r9,  r.r10, r.r11, r.r12, r.r13, r.r14, r.r15};
  state.pc = r.rip;
  state.flags = r.eflags & ~kTrapFlag;
  state.fs_base = r.fs_base;
  state.gs_base = r.gs_base;

  static const arch::x86::XsaveLayout layout = arch::x86::host_xsave_layout();
  static std::vector<std::uint8_t> area(16384);
  iovec io{area.data(), area.size()};
  std::fill(area.begin(), area.end(), std::uint8_t{0});
  if (::ptrace(PTRACE_GETREGSET, pid_, NT_X86_XSTATE, &io) != 0) return false;
  Vectors v{};
  std::uint64_t present = 0;
  std::memcpy(&present, &area[512], 8);
  const auto has = [&](arch::x86::XsaveComponent c) {
    return layout.has(c) && (present >> static_cast<unsigned>(c) & 1) != 0;
  };
  for (unsigned reg = 0; reg < 16; ++reg) {
    if (has(arch::x86::XsaveComponent::kSse)) std::memcpy(&v[reg * 4], &area[160 + 16 * reg], 16);
    if (has(arch::x86::XsaveComponent::kAvx)) {
      std::memcpy(&v[reg * 4 + 2],
                  &area[layout.at(arch::x86::XsaveComponent::kAvx) + std::size_t{16} * reg], 16);
    }
    if (has(arch::x86::XsaveComponent::kHi16Zmm)) {
      std::memcpy(&v[(reg + 16) * 4],
                  &area[layout.at(arch::x86::XsaveComponent::kHi16Zmm) + std::size_t{64} * reg],
                  32);
    }
  }
  if (has(arch::x86::XsaveComponent::kOpmask)) {
    std::memcpy(&v[cpu::kFirstMaskSlot - cpu::kFirstVectorSlot],
                &area[layout.at(arch::x86::XsaveComponent::kOpmask)],
                cpu::kMaskRegisters * sizeof(std::uint64_t));
  }
  if (vectors_.empty() || vectors_.back() != v) vectors_.push_back(v);
  state.vectors = static_cast<std::uint32_t>(vectors_.size() - 1);
  return true;
}

std::size_t TruthRun::peek(std::uint64_t address, void* out, std::size_t bytes) const {
  iovec local{out, bytes};
  iovec remote{std::bit_cast<void*>(address), bytes};
  const ssize_t got = ::process_vm_readv(pid_, &local, 1, &remote, 1, 0);
  return got < 0 ? 0 : static_cast<std::size_t>(got);
}

void TruthRun::add_sample(std::uint64_t address, std::size_t size, bool is_operand) {
  const std::size_t at = bytes_.size();
  bytes_.resize(at + size);
  const std::size_t got = peek(address, &bytes_[at], size);
  bytes_.resize(at + got);
  if (got == 0) return;
  samples_.push_back({static_cast<std::uint32_t>(steps_.size()), static_cast<std::uint32_t>(got),
                      address, at, is_operand});
}

const ExecutedInsn& TruthRun::code_at(std::uint64_t pc) {
  ExecutedInsn now;
  const std::size_t size = peek(pc, now.bytes.data(), now.bytes.size());
  auto& known = code_[pc];
  const auto same = std::ranges::find_if(known, [&now](const std::unique_ptr<ExecutedInsn>& insn) {
    return insn->bytes == now.bytes;
  });
  if (same != known.end()) return **same;
  now.facts =
      arch::decode_insn(arch::Isa::kAmd64, TraceeAddr{pc}, std::span{now.bytes}.first(size));
  known.push_back(std::make_unique<ExecutedInsn>(now));
  return *known.back();
}

void TruthRun::sample_memory(const General& state) {
  const ExecutedInsn& code = code_at(state.pc);
  ZydisDecodedInstruction insn;
  std::array<ZydisDecodedOperand, ZYDIS_MAX_OPERAND_COUNT> operands;
  if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&decoder(), code.bytes.data(), code.facts.length, &insn,
                                           operands.data()))) {
    return;
  }
  ZydisRegisterContext context{};
  for (unsigned i = 0; i < 16; ++i) {
    context.values[ZYDIS_REGISTER_RAX + i] = state.regs[i];
    context.values[ZYDIS_REGISTER_EAX + i] = state.regs[i] & 0xffffffff;
  }
  for (unsigned i = 0; i < insn.operand_count; ++i) {
    const ZydisDecodedOperand& operand = operands[i];
    if (operand.type != ZYDIS_OPERAND_TYPE_MEMORY || operand.size == 0) continue;
    if (operand.mem.type != ZYDIS_MEMOP_TYPE_MEM) continue;
    ZyanU64 address = 0;
    if (!ZYAN_SUCCESS(ZydisCalcAbsoluteAddressEx(&insn, &operand, state.pc, &context, &address))) {
      continue;
    }
    if (operand.mem.segment == ZYDIS_REGISTER_FS) address += state.fs_base;
    if (operand.mem.segment == ZYDIS_REGISTER_GS) address += state.gs_base;
    const bool push = operand.visibility == ZYDIS_OPERAND_VISIBILITY_HIDDEN &&
                      (operand.actions & ZYDIS_OPERAND_ACTION_MASK_WRITE) != 0;
    if (push) add_sample(state.regs[cpu::kRsp] - 8, 8, false);
    add_sample(address, std::min<std::size_t>(operand.size / 8, 64),
               !push && (operand.actions & ZYDIS_OPERAND_ACTION_MASK_READ) != 0);
  }
  if (steps_.size() % 16 == 0) add_sample(state.regs[4] - 192, 512, false);
  if (steps_.size() % 64 == 7) add_sample(state.regs[steps_.size() / 64 % 16], 64, false);
}

void TruthRun::trim(std::size_t most) {
  if (steps_.size() < most * 2) return;
  const std::size_t drop = steps_.size() - most;
  const auto first = [](auto& list, std::size_t n) {
    list.erase(list.begin(), list.begin() + static_cast<std::ptrdiff_t>(n));
  };
  first(steps_, drop);
  first(states_, drop);
  const auto old = std::find_if(samples_.begin(), samples_.end(),
                                [drop](const MemorySample& s) { return s.position >= drop; });
  const std::size_t cut = old == samples_.end() ? bytes_.size() : old->at;
  samples_.erase(samples_.begin(), old);
  first(bytes_, cut);
  for (MemorySample& s : samples_) {
    s.position -= static_cast<std::uint32_t>(drop);
    s.at -= cut;
  }
  const auto gone = std::ranges::count_if(events_, [drop](auto& e) { return e.before < drop; });
  first(events_, static_cast<std::size_t>(gone));
  first(interrupted_, static_cast<std::size_t>(gone));
  for (Event& e : events_) e.before -= drop;
  const std::uint32_t unused = states_.front().vectors;
  first(vectors_, unused);
  for (General& g : states_) g.vectors -= unused;
  for (General& g : interrupted_) g.vectors -= unused;
}

void TruthRun::run(const TruthOptions& options) {
  std::size_t count = 0;
  int signal = 0;
  General now{};
  if (!read_state(now)) {
    error_ = "cannot read the registers";
    return;
  }
  states_.push_back(now);
  while (options.stop_after == 0 || count < options.stop_after) {
    const ExecutedInsn& code = code_at(now.pc);
    sample_memory(now);
    const bool repeats = code.facts.repeats;
    const int delivered = signal;
    Stop stop = step_once(signal);
    General next{};
    while (true) {
      if (stop == Stop::kGone || stop == Stop::kLast || !read_state(next)) break;
      if (delivered != 0 || !repeats || next.pc != now.pc || stop == Stop::kSignal) break;
      stop = step_once(signal);
    }
    if (stop == Stop::kGone) {
      if (pid_ == 0) error_ = "the program is gone";
      break;
    }
    if (stop == Stop::kLast) break;
    if (delivered != 0) {
      // No instruction ran: the kernel entered the handler.
      events_.push_back({steps_.size(), EventKind::kSignal, TraceeAddr{now.pc}, &code});
      interrupted_.push_back(now);
      now = next;
      states_.back() = now;
      if (stop == Stop::kSignal) {
        error_ = "a signal on entry to a handler";
        break;
      }
      continue;
    }
    if (stop == Stop::kSignal && next.pc == now.pc) {
      // A fault, perhaps in the middle of the instruction, which has not completed.
      std::erase_if(samples_,
                    [this](const MemorySample& s) { return s.position == steps_.size(); });
      states_.back() = next;
      now = next;
      std::ifstream status{"/proc/" + std::to_string(pid_) + "/status"};
      std::uint64_t caught = 0;
      for (std::string line; std::getline(status, line);) {
        if (line.rfind("SigCgt:", 0) == 0) caught = std::strtoull(line.c_str() + 7, nullptr, 16);
      }
      if ((caught >> (signal - 1) & 1) == 0) break;
      continue;
    }
    steps_.push_back({TraceeAddr{now.pc}, TraceeAddr{next.pc}, &code});
    states_.push_back(next);
    now = next;
    ++count;
    trim(options.most_steps);
  }
}

void TruthRun::add_facts(std::size_t step, std::size_t begin, std::vector<Fact>& out) const {
  namespace translate = arch::x86::translate;
  const auto add = [&](std::size_t at, Slot slot) {
    out.push_back({at - begin, static_cast<arch::ValueKind>(slot), states_[at].regs[slot]});
  };
  const TraceeAddr pc = steps_[step].pc;
  const bool is_handler_return = states_[step + 1].pc != pc.value() + 2;
  const auto insn = translate::decode_source(pc, steps_[step].code->view());
  if (insn.kind == translate::InsnClass::kSystemCall) {
    constexpr std::array<Slot, 7> kNumberAndArguments{0, 7, 6, 2, 10, 8, 9};
    for (const Slot slot : kNumberAndArguments) add(step, slot);
    add(is_handler_return ? step : step + 1, is_handler_return ? cpu::kRsp : cpu::kRax);
    return;
  }
  // A recorder needs r10 for itself.
  const translate::ValueRegisters of = translate::value_registers(insn);
  const unsigned lost = of.lost_stack | (recorded_ == Recorded::kOldBytes ? of.lost : 0U);
  const unsigned regs = (of.of_stores | lost) & ~(1U << 10U);
  for (Slot slot = 0; slot < cpu::kGeneralSlots; ++slot) {
    if ((regs >> slot & 1U) != 0) add(step, slot);
  }
  for (Slot slot = 0; slot < cpu::kGeneralSlots; ++slot) {
    if ((of.unrelated & ~(1U << 10U)) >> slot & 1U) add(step + 1, slot);
  }
  if (recorded_ == Recorded::kOldBytes) add_old_bytes(step, insn, begin, out);
}

void TruthRun::add_signal_facts(std::size_t begin, Window& out) const {
  const auto first = std::ranges::find_if(
      events_, [&](const Event& e) { return e.before == begin + out.events.front().before; });
  for (std::size_t i = 0; i < out.events.size(); ++i) {
    const auto number = static_cast<std::size_t>(first - events_.begin()) + i;
    const General& before = interrupted_[number];
    const std::size_t step = out.events[i].before;
    // Another result of a call that is interrupted is saved than debuggers see.
    const bool in_call =
        step == 0 || steps_[begin + step - 1].code->facts.kind == arch::InsnKind::kSystemCall;
    out.facts.push_back({step, arch::kFlagsKind, before.flags & cpu::kTrackedFlags, i});
    for (Slot slot = in_call ? 1 : 0; slot < cpu::kGeneralSlots; ++slot) {
      out.facts.push_back({step, static_cast<arch::ValueKind>(slot), before.regs[slot], i});
    }
    const bool is_last = i + 1 == out.events.size() || out.events[i + 1].before != step;
    if (!is_last) continue;
    const General& after = states_[begin + step];
    out.facts.push_back({step, arch::kFlagsKind, after.flags & cpu::kTrackedFlags});
    for (Slot slot = 0; slot < cpu::kGeneralSlots; ++slot) {
      out.facts.push_back({step, static_cast<arch::ValueKind>(slot), after.regs[slot]});
    }
  }
}

/// Memory was sampled before each step, wherever it has an operand.
void TruthRun::add_old_bytes(std::size_t step, const arch::x86::translate::SourceInsn& insn,
                             std::size_t begin, std::vector<Fact>& out) const {
  namespace translate = arch::x86::translate;
  using translate::InsnClass;
  if (insn.kind != InsnClass::kCopy) return;
  const translate::StoredPlace place = translate::value_registers(insn).stored;
  const auto& regs = states_[step].regs;
  std::uint64_t address = insn.target.value();
  if (!place.is_relative) {
    address = static_cast<std::uint64_t>(std::int64_t{place.at.displacement});
    if (place.at.base) address += regs[static_cast<std::size_t>(*place.at.base)];
    if (place.at.index) {
      address += regs[static_cast<std::size_t>(*place.at.index)] << place.at.scale_bits;
    }
  }
  if (place.is_fs) address += states_[step].fs_base;
  const auto first = std::ranges::lower_bound(samples_, step, {}, &MemorySample::position);
  const auto sample = std::find_if(first, samples_.end(), [&](const MemorySample& each) {
    return each.position != step ||
           (address >= each.address && address + place.bytes <= each.address + each.size);
  });
  if (sample == samples_.end() || sample->position != step) return;
  const auto size = std::min<std::uint8_t>(place.bytes, 8);
  for (std::uint8_t part = 0; part * 8 < place.bytes; ++part) {
    std::uint64_t value = 0;
    std::memcpy(&value, bytes(*sample) + (address - sample->address) + 8UL * part, size);
    out.push_back({step - begin, arch::kind_of({part, size}), value});
  }
}

Window TruthRun::window(std::size_t begin, std::size_t end) const {
  Window w;
  w.steps.assign(steps_.begin() + static_cast<std::ptrdiff_t>(begin),
                 steps_.begin() + static_cast<std::ptrdiff_t>(end));
  for (Event e : events_) {
    if (e.before < begin || e.before > end || (e.before == end && end != steps_.size())) continue;
    e.before -= begin;
    w.events.push_back(e);
  }
  for (Step& step : w.steps) {
    if (is_of_file(step.pc)) step.code = nullptr;
  }
  for (Event& event : w.events) {
    if (is_of_file(event.interrupted)) event.code = nullptr;
  }
  w.end_pc = TraceeAddr{states_[end].pc};
  if (recorded_ == Recorded::kNothing) return w;
  for (std::size_t i = begin; i < end; ++i) add_facts(i, begin, w.facts);
  std::erase_if(w.facts, [&](const Fact& fact) { return fact.step >= end - begin; });
  if (!w.events.empty()) add_signal_facts(begin, w);
  std::ranges::stable_sort(w.facts, {}, [](const Fact& f) { return std::pair{f.step, f.signal}; });
  return w;
}

std::uint64_t TruthRun::reg_at(std::size_t position, Slot slot) const {
  const General& state = states_[position];
  if (slot < cpu::kGeneralSlots) return state.regs[slot];
  if (slot == cpu::kFlagsSlot) return state.flags;
  if (slot == cpu::kFsBaseSlot) return state.fs_base;
  if (slot == cpu::kGsBaseSlot) return state.gs_base;
  return vectors_[state.vectors][slot - cpu::kFirstVectorSlot];
}

std::size_t TruthRun::read_code(TraceeAddr address, std::span<std::uint8_t> out) {
  return peek(address.value(), out.data(), out.size());
}

Known TruthRun::reg(Slot slot) {
  return cpu::known(reg_at(steps_.size(), slot));
}

void TruthRun::read_mappings() {
  std::ifstream maps{"/proc/" + std::to_string(pid_) + "/maps"};
  for (std::string line; std::getline(maps, line);) {
    Mapping m{0, 0, PageKind::kUnknown};
    std::array<char, 5> permissions{};
    if (std::sscanf(line.c_str(), "%lx-%lx %4s", &m.begin, &m.end, permissions.data()) != 3) {
      continue;
    }
    const bool special = line.find("[vvar") != std::string::npos;
    if (permissions[3] == 'p' && !special) {
      m.kind = permissions[1] == 'w' ? PageKind::kPrivate : PageKind::kConstant;
    }
    shares_ |= permissions[3] == 's' && permissions[1] == 'w';
    m.heap = line.find("[heap]") != std::string::npos;
    m.is_of_file = line.find('/') != std::string::npos || line.find("[vdso]") != std::string::npos;
    mappings_.push_back(m);
  }
  struct {
    std::uint64_t pointer;
    std::uint32_t size, signature, flags, pad;
  } rseq{};
  constexpr int kGetRseqConfiguration = 0x420f;
  if (::ptrace(static_cast<__ptrace_request>(kGetRseqConfiguration), pid_, sizeof(rseq), &rseq) >
      0) {
    rseq_ = rseq.pointer;
  }
}

const TruthRun::Mapping* TruthRun::mapping_of(TraceeAddr address) const {
  // The kernel lists mappings by address.
  const auto after = std::ranges::upper_bound(mappings_, address.value(), {}, &Mapping::begin);
  if (after == mappings_.begin() || address.value() >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

bool TruthRun::is_of_file(TraceeAddr address) const {
  const Mapping* mapping = mapping_of(address);
  return mapping != nullptr && mapping->is_of_file;
}

PageKind TruthRun::page(TraceeAddr address) {
  const Mapping* mapping = mapping_of(address);
  return mapping == nullptr ? PageKind::kUnknown : mapping->kind;
}

bool TruthRun::stable(TraceeAddr granule) {
  return rseq_ == 0 || granule.value() + 8 <= rseq_ || granule.value() >= rseq_ + 32;
}

Known TruthRun::granule(TraceeAddr address) {
  std::uint64_t value = 0;
  return peek(address.value(), &value, 8) == 8 ? cpu::known(value) : Known{};
}

std::optional<std::pair<TraceeAddr, TraceeAddr>> TruthRun::heap() {
  for (const Mapping& m : mappings_) {
    if (m.heap) return std::pair{TraceeAddr{m.begin}, TraceeAddr{m.end}};
  }
  return std::nullopt;
}

}  // namespace backtrail::decoder::values
