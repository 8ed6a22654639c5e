// SPDX-License-Identifier: Apache-2.0
#include "test/unit/arch/x86/translate/random_code.hpp"

#include <cstring>
#include <utility>

namespace backtrail::arch::x86::translate {
namespace {

constexpr unsigned kRcx = 1;
constexpr unsigned kRsp = 4;
constexpr unsigned kRdi = 7;
constexpr unsigned kR10 = 10;
constexpr unsigned kEscape = 0x0f;
constexpr unsigned kRipRelative = 5;
constexpr unsigned kSib = 4;
constexpr unsigned kRexWide = 8;

}  // namespace

void RandomCode::put(Bytes bytes) {
  for (const unsigned byte : bytes) code_.push_back(static_cast<std::uint8_t>(byte));
}

void RandomCode::put32(std::uint32_t value) {
  put({value & 0xff, value >> 8 & 0xff, value >> 16 & 0xff, value >> 24});
}

unsigned RandomCode::reg() {
  for (;;) {
    const unsigned any = below(4) == 0 ? kR10 + below(2) : below(16);
    if (any != kRsp && !(rcx_counts_ && any == kRcx)) return any;
  }
}

void RandomCode::put_operand(unsigned field, bool memory, unsigned rm, unsigned immediate) {
  const unsigned reg_bits = (field & 7) << 3;
  if (!memory) {
    put({0xc0 | reg_bits | (rm & 7)});
  } else if (!in_function_ && below(2) == 0) {
    // An address around rsp, including the red zone.
    put({0x40 | reg_bits | kSib, 0x24, below(240) + 136});
    code_.back() = static_cast<std::uint8_t>(static_cast<int>(below(15)) * 16 - 120);
  } else {
    put({reg_bits | kRipRelative});
    const auto behind = static_cast<std::int32_t>(code_.size() + 4 + immediate);
    const auto at = kDataOffset + static_cast<std::int32_t>(below(kDataBytes - 16));
    put32(static_cast<std::uint32_t>(at - behind));
  }
}

void RandomCode::emit(const Form& form) {
  const bool memory = form.memory && below(2) == 0;
  const unsigned field = form.field >= 0 ? static_cast<unsigned>(form.field) : reg();
  const unsigned rm = reg();
  unsigned immediate = form.immediate;
  unsigned rex = (form.field < 0 && field >= 8 ? 4U : 0U) | (!memory && rm >= 8 ? 1U : 0U);
  bool needs_rex = rex != 0;
  if (form.sized) {
    const unsigned size = below(3);
    if (size == 0) {
      put({0x66});
      if (immediate == 4) immediate = 2;
    }
    if (size == 2) {
      rex |= kRexWide;
      needs_rex = true;
    }
  }
  if (form.prefix != 0) put({form.prefix});
  // Some low byte registers need a REX prefix; without it they are ah to bh.
  const bool low_byte = !form.sized && form.prefix == 0;
  if (needs_rex || (low_byte && (rcx_counts_ || below(2) == 0))) put({0x40 | rex});
  if (form.escape != 0) put({form.escape});
  put({form.opcode});
  put_operand(field, memory, rm, immediate);
  for (; immediate != 0; --immediate) put({below(256)});
}

void RandomCode::arithmetic() {
  const unsigned operation = below(8) * 8;
  if (below(3) == 0) {
    emit({.opcode = operation | pick({0, 2}), .sized = false});
  } else {
    emit({.opcode = operation | pick({1, 3})});
  }
}

void RandomCode::unary() {
  switch (below(4)) {
    case 0:
      return emit({.opcode = 0xf7, .field = static_cast<int>(pick({2, 3}))});
    case 1:
      return emit({.opcode = 0xff, .field = static_cast<int>(pick({0, 1}))});
    case 2:
      if (rcx_counts_) return;
      return emit({.opcode = 0xf7, .field = static_cast<int>(pick({4, 5}))});
    default:
      return emit({.opcode = 0xfe, .field = static_cast<int>(pick({0, 1})), .sized = false});
  }
}

void RandomCode::with_immediate() {
  switch (below(5)) {
    case 0:
      return emit({.opcode = 0x81, .field = static_cast<int>(below(8)), .immediate = 4});
    case 1:
      return emit({.opcode = 0x83, .field = static_cast<int>(below(8)), .immediate = 1});
    case 2:
      return emit(
          {.opcode = 0xc1, .field = static_cast<int>(pick({0, 1, 2, 3, 4, 5, 7})), .immediate = 1});
    case 3:
      return emit({.opcode = 0x69, .immediate = 4});
    default:
      return emit({.opcode = 0xf7, .field = 0, .immediate = 4});
  }
}

void RandomCode::two_byte() {
  switch (below(8)) {
    case 0:
      return emit({.escape = kEscape, .opcode = 0x40 | below(16)});
    case 1:
      return emit({.escape = kEscape, .opcode = 0x90 | below(16), .field = 0, .sized = false});
    case 2:
      return emit({.escape = kEscape, .opcode = pick({0xb6, 0xb7, 0xbe, 0xbf})});
    case 3:
      return emit({.escape = kEscape, .opcode = 0xaf});
    case 4:
      return emit({.escape = kEscape, .opcode = pick({0xc1, 0xb1})});
    case 5:
      return emit({.escape = kEscape, .opcode = pick({0xa3, 0xab, 0xb3, 0xbb}), .memory = false});
    case 6:
      return emit({.escape = kEscape, .opcode = pick({0xa4, 0xac}), .immediate = 1});
    default:
      return emit({.escape = kEscape,
                   .opcode = 0xba,
                   .field = static_cast<int>(4 + below(4)),
                   .immediate = 1});
  }
}

void RandomCode::old_bytes() {
  // cmc, clc, stc, lahf, cwde, cdq, and sahf.
  put({pick({0xf5, 0xf8, 0xf9, 0x9f, 0x98, 0x99, 0x9e})});
}

void RandomCode::vector() {
  switch (below(4)) {
    case 0:
      return emit({.prefix = 0x66,
                   .escape = kEscape,
                   .opcode = pick({0xef, 0xfe, 0xd4, 0xeb}),
                   .sized = false,
                   .memory = false});
    case 1:
      return emit(
          {.prefix = 0xf3, .escape = kEscape, .opcode = pick({0x6f, 0x7f}), .sized = false});
    case 2:
      return emit({.prefix = 0x66, .escape = kEscape, .opcode = 0x6e, .sized = false});
    default:
      if (rcx_counts_) return;
      return emit({.prefix = 0x66, .escape = kEscape, .opcode = 0x7e, .sized = false});
  }
}

void RandomCode::stack() {
  const unsigned pushed = below(3) == 0 ? kRsp : reg();
  if (below(4) == 0) {
    put({0x9c});  // pushfq
  } else {
    if (pushed >= 8) put({0x41});
    put({0x50 | (pushed & 7)});
  }
  if (below(2) == 0) arithmetic();
  const unsigned popped = reg();
  if (popped >= 8) put({0x41});
  put({0x58 | (popped & 7)});
}

void RandomCode::load_address() {
  const unsigned into = reg();
  put({0x48 | (into >= 8 ? 4U : 0U), 0x8d});
  put_operand(into, true, 0, 0);
}

void RandomCode::string() {
  if (rcx_counts_) return;
  put({0x48, 0x8d, kRdi << 3 | kRipRelative});  // lea rdi, [rip+...]
  put32(static_cast<std::uint32_t>(kDataOffset - static_cast<std::int32_t>(code_.size() + 4)));
  put({0xb9});  // mov ecx, ...
  put32(below(20));
  put({0xf3, 0xaa});  // rep stosb
}

template <typename Body>
void RandomCode::skip(Bytes jump, Body body) {
  put(jump);
  put32(0);
  const std::size_t from = code_.size();
  body();
  const auto distance = static_cast<std::uint32_t>(code_.size() - from);
  std::memcpy(&code_[from - sizeof distance], &distance, sizeof distance);
}

void RandomCode::jump_over() {
  const bool conditional = below(3) != 0;
  const auto body = [this] { straight(below(4)); };
  if (conditional) {
    skip({kEscape, 0x80 | below(16)}, body);
  } else {
    skip({0xe9}, body);
  }
}

void RandomCode::jump_if_no_rcx() {
  put({0xe3, 5});  // jrcxz over the next jump
  skip({0xe9}, [this] { straight(below(3)); });
}

void RandomCode::loop() {
  if (rcx_counts_) return;
  put({0xb9});  // mov ecx, ...
  put32(1 + below(9));
  rcx_counts_ = true;
  const std::size_t begin = code_.size();
  straight(1 + below(3));
  const unsigned how = below(3);
  if (how == 0) {
    put({0xff, 0xc9, kEscape, 0x85});  // dec ecx; jne
  } else {
    // loop, loope or loopne, which may end earlier; by a short jump and a near one.
    put({how == 1 ? 0xe2U : pick({0xe0, 0xe1}), 2, 0xeb, 5, 0xe9});
  }
  put32(static_cast<std::uint32_t>(begin - (code_.size() + 4)));
  rcx_counts_ = false;
}

void RandomCode::call() {
  std::size_t function = 0;
  const bool pops = below(3) == 0;
  skip({0xe9}, [&] {
    function = code_.size();
    // The return address is on the stack.
    const bool outer = std::exchange(in_function_, true);
    straight(below(4));
    in_function_ = outer;
    if (below(4) == 0) {
      // Pops and pushes the return address, which still returns to the call.
      put({0x41, 0x5a, 0x41, 0x52});  // pop r10; push r10
    }
    if (pops) {
      put({0xc2, sizeof(std::uint64_t), 0});
    } else {
      put({0xc3});
    }
  });
  if (pops) put({0x50 | kRdi});  // push rdi
  put({0xe8});
  put32(static_cast<std::uint32_t>(function - (code_.size() + 4)));
}

void RandomCode::jump_through_register() {
  const unsigned through = reg();
  put({0x48 | (through >= 8 ? 4U : 0U), 0x8d, (through & 7) << 3 | kRipRelative});
  const std::size_t field = code_.size();
  put32(0);
  if (through >= 8) put({0x41});
  put({0xff, 0xe0 | (through & 7)});  // jmp reg
  straight(below(3));
  const auto distance = static_cast<std::uint32_t>(code_.size() - (field + 4));
  std::memcpy(&code_[field], &distance, sizeof distance);
}

void RandomCode::system_call() {
  if (rcx_counts_) return;
  const unsigned number = kHarmlessCalls.at(below(kHarmlessCalls.size()));
  if (below(3) == 0) {
    put({0x6a, number, 0x58});  // push ...; pop rax
  } else {
    put({0xb8});  // mov eax, ...
    put32(number);
  }
  put({kEscape, 0x05});
}

void RandomCode::straight(unsigned count) {
  for (; count != 0; --count) piece();
}

void RandomCode::piece() {
  const unsigned kinds = depth_ < 3 ? 14 : 9;
  ++depth_;
  if (makes_calls_ && below(8) == 0) system_call();
  switch (below(kinds)) {
    case 0:
      arithmetic();
      break;
    case 1:
      unary();
      break;
    case 2:
      with_immediate();
      break;
    case 3:
      two_byte();
      break;
    case 4:
      old_bytes();
      break;
    case 5:
      vector();
      break;
    case 6:
      stack();
      break;
    case 7:
      load_address();
      break;
    case 8:
      string();
      break;
    case 9:
      jump_over();
      break;
    case 10:
      jump_if_no_rcx();
      break;
    case 11:
      loop();
      break;
    case 12:
      call();
      break;
    default:
      jump_through_register();
      break;
  }
  --depth_;
}

std::vector<std::uint8_t> RandomCode::make(unsigned pieces) {
  code_.clear();
  straight(pieces);
  return std::move(code_);
}

}  // namespace backtrail::arch::x86::translate
