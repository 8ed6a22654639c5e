#pragma once
/// @file
/// Small programs of random instructions that always come to their end.

#include <array>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace backtrail::arch::x86::translate {

/// getpid, getuid, getgid, geteuid, which take no arguments, and access, which mostly fails with
/// EFAULT.
inline constexpr std::array<std::uint8_t, 5> kHarmlessCalls{39, 102, 104, 107, 21};

/// Position-independent code that uses all general registers but rsp for what it likes, 256 bytes
/// at a fixed distance from its beginning, and the stack from 128 bytes below rsp to 128 above.
class RandomCode {
 public:
  static constexpr std::int32_t kDataOffset = 0x8000;
  static constexpr std::int32_t kDataBytes = 256;

  /// `makes_calls`: some pieces are system calls of kHarmlessCalls.
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
  /// Any but rsp, and but rcx where that counts; those more often that translated code needs.
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

  /// Prefix, opcode, operands, immediate. `wide` chooses among operand sizes.
  struct Form {
    unsigned prefix = 0;  ///< 0: none.
    unsigned escape = 0;  ///< 0x0f, or none.
    unsigned opcode = 0;
    int field = -1;          ///< Of the ModRM byte; -1: a register.
    unsigned immediate = 0;  ///< Bytes.
    bool sized = true;       ///< 16, 32 and 64 bits all make sense.
    bool memory = true;
    bool destination_is_field = false;
  };
  void emit(const Form& form);
  void put_operand(unsigned field, bool memory, unsigned rm, unsigned immediate);

  /// Emits something with a jump over it in front, whose displacement is filled in.
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
