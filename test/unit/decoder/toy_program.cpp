// SPDX-License-Identifier: Apache-2.0
#include "test/unit/decoder/toy_program.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <iterator>

namespace backtrail::test {
namespace {

constexpr std::size_t kFunctions = 9;
constexpr std::size_t kModules = 3;
constexpr std::uint64_t kFunctionSpace = 0x1000;

/// Returns a code address: low, high, or (in 64-bit programs) negative.
TraceeAddr module_base(arch::Isa isa, std::size_t module) {
  constexpr std::array<std::uint64_t, kModules> kAmd64{0x401000, 0x7f12'3456'7000,
                                                       0xffff'ffff'ff60'0000};
  constexpr std::array<std::uint64_t, kModules> kI386{0x8049000, 0xf7d0'0000, 0x5655'6000};
  return TraceeAddr{isa == arch::Isa::kAmd64 ? kAmd64.at(module) : kI386.at(module)};
}

}  // namespace

/// A rel32 operand whose target is not known yet.
struct ToyProgram::Fixup {
  TraceeAddr insn;
  std::size_t function;   // The function whose block or entry is the target.
  std::size_t min_block;  // The target is this block or a later one; 0 with `entry`.
  bool entry;
};

ToyProgram::ToyProgram(arch::Isa isa, Random& random) : isa_{isa} {
  std::vector<Fixup> fixups;
  for (std::size_t i = 0; i < kFunctions; ++i) {
    functions_.push_back(module_base(isa, i % kModules) + i / kModules * kFunctionSpace);
  }
  for (std::size_t i = 0; i < kFunctions; ++i) add_function(functions_[i], i, random, fixups);
  for (Fixup& fixup : fixups) {
    if (!fixup.entry) {
      const std::size_t count = blocks_[functions_[fixup.function]].size();
      fixup.min_block += pick(random, count - fixup.min_block);
    }
    apply(fixup);
  }
  restorer_ = functions_.back() + kFunctionSpace;
  base_ = restorer_;
  code_ = &bytes_[base_];
  blocks_[base_] = {base_};
  emit(ToyKind::kPlain, {0xb8, 0x0f, 0, 0, 0});  // mov eax, 15
  emit(ToyKind::kSigreturn, {0xcd, 0x80});
}

TraceeAddr ToyProgram::here() const {
  return base_ + code_->size();
}

void ToyProgram::emit(ToyKind kind, std::initializer_list<std::uint8_t> bytes, TraceeAddr target) {
  insns_[here()] = {here(), static_cast<std::uint8_t>(bytes.size()), kind, target};
  code_->insert(code_->end(), bytes);
}

void ToyProgram::add_function(TraceeAddr base, std::size_t index, Random& random,
                              std::vector<Fixup>& fixups) {
  base_ = base;
  code_ = &bytes_[base];
  const std::size_t blocks = 3 + pick(random, 8);
  for (std::size_t i = 0; i < blocks; ++i) {
    blocks_[base].push_back(here());
    const TraceeAddr begin = here();
    add_body(random);
    // LOOP jumps back to the start of this block with a short jump.
    if (pick(random, 6) == 0) {
      const auto back = static_cast<std::uint8_t>(begin - (here() + 2));
      emit(ToyKind::kConditional, {0xe2, back}, begin);
    }
    add_exit(i + 1 == blocks, index, random, fixups);
  }
}

void ToyProgram::add_body(Random& random) {
  for (std::uint32_t n = pick(random, 5); n != 0; --n) {
    switch (pick(random, 9)) {
      case 0:
        emit(ToyKind::kPlain, {0x90});  // nop
        break;
      case 1:
        emit(ToyKind::kPlain, {0x89, 0xc0});  // mov eax, eax
        break;
      case 2:
        emit(ToyKind::kPlain, {0x0f, 0x1f, 0x44, 0x00, 0x00});  // nop
        break;
      case 3:
        emit(ToyKind::kPlain, {0xf3, 0xa4});  // rep movsb
        break;
      case 4:
        emit(ToyKind::kPlain, {0xc5, 0xf8, 0x77});  // vzeroupper
        break;
      case 5:
        emit(ToyKind::kPlain, {0x62, 0xf1, 0x7c, 0x48, 0x28, 0xc1});  // vmovaps zmm0, zmm1
        break;
      case 6:  // jz to the next instruction
        emit(ToyKind::kConditional, {0x74, 0x00}, here() + 2);
        break;
      case 7:
        emit(ToyKind::kSystemCall, {0xcd, 0x80});
        break;
      default:
        if (isa_ == arch::Isa::kAmd64) {
          emit(ToyKind::kSystemCall, {0x0f, 0x05});
        } else {
          emit(ToyKind::kPlain, {0xf4});  // hlt, which only decoders see.
        }
    }
  }
}

void ToyProgram::add_exit(bool last, std::size_t function, Random& random,
                          std::vector<Fixup>& fixups) {
  const std::size_t next_block = blocks_[base_].size();
  const TraceeAddr at = here();
  const std::size_t callee = function + kModules;  // The next function of the same module.
  switch (last ? 8 + pick(random, 3) : pick(random, 11)) {
    case 0:
    case 1:
    case 2:  // Backward and forward.
      emit(ToyKind::kConditional,
           {0x0f, static_cast<std::uint8_t>(0x80 + pick(random, 16)), 0, 0, 0, 0});
      fixups.push_back({at, function, 0, false});
      break;
    case 3:  // Forward.
      emit(ToyKind::kJump, {0xe9, 0, 0, 0, 0});
      fixups.push_back({at, function, next_block, false});
      break;
    case 4:
    case 5:
      if (callee >= kFunctions) break;
      emit(ToyKind::kCall, {0xe8, 0, 0, 0, 0});
      fixups.push_back({at, callee, 0, true});
      break;
    case 6:
      emit(ToyKind::kIndirectCall, {0xff, 0xd0});
      break;
    case 7:
      emit(ToyKind::kNextCall, {0xe8, 0, 0, 0, 0}, at + 5);
      emit(ToyKind::kPop, {0x58});
      break;
    case 8:
      emit(ToyKind::kIndirectJump, {0xff, 0xe0});
      break;
    case 9:
      emit(ToyKind::kReturn, {0xc2, 0x08, 0x00});
      break;
    default:
      emit(ToyKind::kReturn, {0xc3});
  }
}

void ToyProgram::apply(const Fixup& fixup) {
  const TraceeAddr function = functions_[fixup.function];
  ToyInsn& insn = insns_.at(fixup.insn);
  insn.target = fixup.entry ? function : blocks_[function].at(fixup.min_block);
  const auto displacement = static_cast<std::uint32_t>(insn.target - insn.behind());
  auto code = std::prev(bytes_.upper_bound(insn.at));
  const std::size_t end = insn.behind() - code->first;
  for (std::size_t i = 0; i < 4; ++i) {
    code->second.at(end - 4 + i) = static_cast<std::uint8_t>(displacement >> (8 * i));
  }
}

std::size_t ToyProgram::read_code(TraceeAddr address, std::span<std::uint8_t> out) {
  auto code = bytes_.upper_bound(address);
  if (code == bytes_.begin()) return 0;
  --code;
  const std::uint64_t offset = address - code->first;
  std::size_t count = 0;
  for (; count < out.size() && offset + count < code->second.size(); ++count) {
    const TraceeAddr at = address + count;
    if (at >= hidden_begin_ && at < hidden_end_) break;
    out[count] = code->second[offset + count];
  }
  return count;
}

const std::vector<TraceeAddr>& ToyProgram::blocks_near(TraceeAddr address) const {
  return std::prev(blocks_.upper_bound(address))->second;
}

std::vector<std::uint64_t> ToyProgram::expand(TraceeAddr first, TraceeAddr last) const {
  std::vector<std::uint64_t> addresses;
  for (auto insn = insns_.find(first); insn != insns_.end(); insn = insns_.find(first)) {
    addresses.push_back(first.value());
    if (first == last) return addresses;
    first = insn->second.behind();
  }
  return {};
}

}  // namespace backtrail::test
