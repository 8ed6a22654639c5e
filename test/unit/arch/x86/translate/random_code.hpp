// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Makes small programs of random instructions that always reach their end.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace backtrail::arch::x86::translate {

/// getpid, getuid, getgid and geteuid, which take no arguments, and access, which usually fails
/// with EFAULT.
inline constexpr std::array<std::uint8_t, 5> kHarmlessCalls{39, 102, 104, 107, 21};

/// Makes position-independent code. It uses all general registers except rsp freely, 256 bytes at a
/// fixed distance from its beginning, and the stack from 128 bytes below rsp to 128 above.
class RandomCode {
 public:
  static constexpr std::int32_t kDataOffset = 0x8000;
  static constexpr std::int32_t kDataBytes = 256;

  /// If `makes_calls`, some pieces are system calls from kHarmlessCalls.
  explicit RandomCode(unsigned seed, bool makes_calls = false)
      : random_{seed}, makes_calls_{makes_calls} {}
  std::vector<std::uint8_t> make(unsigned pieces);

 private:
  using Bytes = std::initializer_list<unsigned>;

  unsigned below(unsigned limit) { return static_cast<unsigned>(random_() % limit); }
  unsigned pick(Bytes values) {
    return *(values.begin() + below(static_cast<unsigned>(values.size())));
  }
  void put(Bytes bytes);
  void put32(std::uint32_t value);
  /// Returns a register other than rsp, and other than rcx while it counts. Prefers registers that
  /// translated code needs.
  unsigned reg();
  void piece();
  void straight(unsigned count);

  void arithmetic();
  void unary();
  void with_immediate();
  void two_byte();
  void old_bytes();
  void vector();
  void stack();
  void load_address();
  void string();
  void jump_over();
  void jump_if_no_rcx();
  void loop();
  void call();
  void jump_through_register();
  void system_call();

  /// Prefix, opcode, operands and immediate of an instruction. `wide` chooses among operand sizes.
  struct Form {
    unsigned prefix = 0;  ///< 0 for none.
    unsigned escape = 0;  ///< 0x0f, or 0 for none.
    unsigned opcode = 0;
    int field = -1;          ///< Reg field of the ModRM byte; -1 for a register.
    unsigned immediate = 0;  ///< Size in bytes.
    bool sized = true;       ///< Operands of 16, 32 and 64 bits are valid.
    bool memory = true;
    bool destination_is_field = false;
  };
  void emit(const Form& form);
  void put_operand(unsigned field, bool memory, unsigned rm, unsigned immediate);

  /// Emits a jump over `body`, and then the body.
  template <typename Body>
  void skip(Bytes jump, Body body);

  std::mt19937 random_;
  bool makes_calls_;
  std::vector<std::uint8_t> code_;
  unsigned depth_ = 0;
  bool rcx_counts_ = false;
  bool in_function_ = false;
};

}  // namespace backtrail::arch::x86::translate
