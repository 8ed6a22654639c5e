// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Models what one instruction does to registers and memory, as relations between values.
///
/// An instruction becomes a list of relations (MicroOp) between registers before it, constants and
/// temporaries; a list of memory accesses; and a list of registers that it defines. Relations hold
/// in both directions, so values can flow backward. An effect that no relation describes leaves a
/// temporary without a relation: an unknown value.

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/values/slots.hpp"

namespace backtrail::arch::x86::values {

/// The kind of a MicroOp. `d`, `a`, `b`, `c` are its refs 0, 1, 2, 3; `w` its width in bits.
enum class Op : std::uint8_t {
  kEqual,           ///< d[p, p+w) = a[q, q+w)
  kEqualMask,       ///< d = a on the bits of the constant b.
  kFill,            ///< d[p, w) are all equal to a[q].
  kAdd,             ///< d = a + b (+ c[p] if there is a c), modulo 2^w.
  kAddFields,       ///< As kAdd, in each field of p bits on its own.
  kMultiply,        ///< d = a * b, modulo 2^w.
  kMultiplyFields,  ///< As kMultiply, in each field of p bits on its own.
  kNot,
  kXor,
  kAnd,
  kOr,
  kAndNot,  ///< d = ~a & b
  kByteSwap,
  kShiftLeft,  ///< By the variable count b (in bits, taken modulo 64, or 32 for w <= 32).
  kShiftRight,
  kShiftRightArithmetic,
  kSelect,       ///< d = b[0] ? a : c
  kCondition,    ///< d[0] = condition code p of the flags a.
  kIsZero,       ///< d[0] = (a == 0)
  kFlagsAdd,     ///< d = flags of c = a + b (with any carry in). p = 1: CF is unchanged.
  kFlagsSub,     ///< d = flags of c = a - b (with any borrow). p = 1: CF is unchanged.
  kFlagsResult,  ///< ZF, SF and PF of d follow from the result a.
  kEvaluate,     ///< One direction only: function p of all inputs (see evaluate.hpp).
};

/// A value that an instruction uses or defines.
struct Ref {
  enum class Kind : std::uint8_t { kNone, kSlot, kTemp, kConstant, kNextPc };
  Kind kind = Kind::kNone;
  std::uint16_t index = 0;

  [[nodiscard]] bool none() const { return kind == Kind::kNone; }
  bool operator==(const Ref&) const = default;
};

inline constexpr unsigned kMaxRefs = 6;

struct MicroOp {
  Op op = Op::kEqual;
  std::uint8_t width = 64;
  std::uint8_t p = 0;
  std::uint8_t q = 0;
  std::array<Ref, kMaxRefs> refs{};
};

enum class AccessKind : std::uint8_t {
  kLoad,
  kStore,
  kRangeStore,    ///< To [base + offset, base + offset + value), of unknown bytes or of `fill`.
  kUnknownStore,  ///< To an unknown address.
};

/// A memory access of at most 8 bytes at `base + offset`. The low `size` bytes of `value` are the
/// contents of memory after it (and, for a load, before it). A range is filled with copies of the
/// low `size` bytes of `fill`.
struct AccessModel {
  AccessKind kind = AccessKind::kLoad;
  std::uint8_t size = 8;
  Ref base;
  Ref value;
  std::int64_t offset = 0;
  Ref fill = {};
};

enum class Special : std::uint8_t {
  kNone,
  kBranch,      ///< The flag `condition` tells whether the branch to `target` was taken.
  kSystemCall,  ///< SYSCALL. What it writes depends on the kernel.
  kOpaque,      ///< May change every register, all memory and the mappings.
};

struct InsnModel {
  std::uint8_t length = 0;  ///< 0: cannot be decoded.
  Special special = Special::kNone;
  /// A string instruction with a repeat prefix, a gather or similar: a fault or a signal may leave
  /// it half done.
  bool restartable = false;
  Ref condition;      ///< For kBranch.
  TraceeAddr target;  ///< For kBranch.
  std::uint16_t temps = 0;
  /// Bits of temporaries that are known from the start.
  struct Initial {
    Ref temp;
    std::uint64_t value, mask;
  };
  struct Definition {
    Slot slot;
    Ref ref;
  };
  std::vector<std::uint64_t> constants;
  std::vector<Initial> initials;
  std::vector<MicroOp> ops;
  std::vector<AccessModel> accesses;  ///< In the order of execution.
  std::vector<Definition> definitions;
};

/// Returns the model of the 64-bit instruction at `pc`, whose bytes begin at `bytes`. Never fails:
/// an undecodable instruction has length 0, one that is not understood is kOpaque. Thread-safe.
/// @param components The components of the CPU's XSAVE area (XCR0); kAnyComponents if unknown.
[[nodiscard]] InsnModel model_insn(TraceeAddr pc, std::span<const std::uint8_t> bytes,
                                   std::uint64_t components);

/// Returns a model of an interrupted restartable instruction: of the registers and memory that it
/// writes nothing is known afterwards but how a repeated string instruction counts.
[[nodiscard]] InsnModel model_interrupted(TraceeAddr pc, std::span<const std::uint8_t> bytes);

}  // namespace backtrail::arch::x86::values
