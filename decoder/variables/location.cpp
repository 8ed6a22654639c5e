// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/location.hpp"

#include <algorithm>
#include <array>

#include <dwarf.h>

#include "arch/base/bytes.hpp"
#include "decoder/variables/expression_stack.hpp"

namespace backtrail::decoder {
namespace {

using Kind = LocationPiece::Kind;

constexpr unsigned kByteBits = 8;
/// Most separate runs of known bytes of an object.
constexpr std::size_t kMostTries = 64;
constexpr std::size_t kWord = sizeof(std::uint64_t);

/// Runs one expression.
class Run {
 public:
  Run(std::span<const Dwarf_Op> ops, Dwarf_Attribute* attribute, const ExpressionContext& context)
      : ops_{ops}, attribute_{attribute}, context_{context} {}

  void push(std::uint64_t value) { stack_.push(value); }

  /// Returns false if the result is unknown.
  bool go() {
    for (at_ = 0; at_ < ops_.size();) {
      if (!context_.work.step()) return false;
      const Dwarf_Op& op = ops_[at_];
      ++at_;
      if (!one(op)) return false;
    }
    return true;
  }

  /// Returns the location that the expression has described.
  Location take() {
    if (has_pieces_) return current_ ? Location{} : std::move(pieces_);
    if (LocationPiece piece; finish_piece(piece)) return {std::move(piece)};
    return {};
  }
  [[nodiscard]] std::optional<std::uint64_t> number() {
    return current_ || has_pieces_ ? std::nullopt : stack_.pop();
  }

 private:
  /// Takes what was described since the last piece: a location, or an address on the stack. Returns
  /// false if there is nothing.
  bool finish_piece(LocationPiece& out) {
    if (current_) {
      out = std::move(*current_);
      current_.reset();
      return true;
    }
    const auto address = stack_.pop();
    if (address) out = {.kind = Kind::kMemory, .value = *address, .bytes = {}};
    return address.has_value();
  }
  bool set(Kind kind, std::uint64_t value) {
    if (current_) return false;
    current_ = LocationPiece{.kind = kind, .value = value, .bytes = {}};
    return true;
  }
  bool push_sum(std::optional<std::uint64_t> base, std::uint64_t offset) {
    if (base) stack_.push(*base + offset);
    return base.has_value();
  }
  [[nodiscard]] std::optional<std::uint64_t> reg(std::uint64_t number) const {
    if (number >= FrameState::kGeneral) return std::nullopt;
    const auto value = context_.state.reg(static_cast<unsigned>(number));
    return value.all() ? std::optional{value.value} : std::nullopt;
  }

  bool one(const Dwarf_Op& op) {
    const unsigned atom = op.atom;
    // After a location only a piece, or the end, may follow.
    if (current_ && atom != DW_OP_piece && atom != DW_OP_nop) return false;
    if (atom >= DW_OP_reg0 && atom <= DW_OP_reg31) return set(Kind::kRegister, atom - DW_OP_reg0);
    if (atom >= DW_OP_breg0 && atom <= DW_OP_breg31) {
      return push_sum(reg(atom - DW_OP_breg0), op.number);
    }
    switch (atom) {
      case DW_OP_regx:
        return set(Kind::kRegister, op.number);
      case DW_OP_bregx:
        return push_sum(reg(op.number), op.number2);
      case DW_OP_addr:
        return push_sum(context_.bias, op.number);
      case DW_OP_addrx:
      case DW_OP_GNU_addr_index: {
        Dwarf_Attribute place;
        Dwarf_Addr address = 0;
        return attribute_ != nullptr && dwarf_getlocation_attr(attribute_, &op, &place) == 0 &&
               dwarf_formaddr(&place, &address) == 0 && push_sum(context_.bias, address);
      }
      case DW_OP_fbreg:
        return context_.frame_base && push_sum(context_.frame_base(), op.number);
      case DW_OP_call_frame_cfa:
        return context_.cfa && push_sum(context_.cfa(), 0);
      case DW_OP_deref:
        return dereference(kWord);
      case DW_OP_deref_size:
        return dereference(op.number);
      case DW_OP_skip:
        return jump(op);
      case DW_OP_bra: {
        const auto condition = stack_.pop();
        if (!condition) return false;
        return *condition == 0 || jump(op);
      }
      case DW_OP_piece:
        return piece(op.number);
      default:
        return describe(op) || stack_.apply(op);
    }
  }

  /// Handles operations that describe values without a place, and values at the function's entry.
  bool describe(const Dwarf_Op& op) {
    switch (op.atom) {
      case DW_OP_stack_value: {
        const auto value = stack_.pop();
        return value && set(Kind::kValue, *value);
      }
      case DW_OP_implicit_value: {
        Dwarf_Block block{};
        if (attribute_ == nullptr || dwarf_getlocation_implicit_value(attribute_, &op, &block) != 0)
          return false;
        if (!set(Kind::kBytes, 0)) return false;
        const std::size_t size = std::min<std::size_t>(block.length, kMostObjectBytes);
        current_->bytes.assign(block.data, block.data + size);
        return true;
      }
      case DW_OP_entry_value:
      case DW_OP_GNU_entry_value:
        return entry_value(op);
      default:
        return false;
    }
  }

  bool entry_value(const Dwarf_Op& op) {
    Dwarf_Attribute inner;
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    if (attribute_ == nullptr || dwarf_getlocation_attr(attribute_, &op, &inner) != 0) return false;
    if (dwarf_getlocation(&inner, &ops, &count) != 0 || count != 1) return false;
    const unsigned number = ops[0].atom - DW_OP_reg0;
    if (ops[0].atom < DW_OP_reg0 || number >= FrameState::kPc) return false;
    const auto value = context_.state.at_entry(number);
    return value.all() && push_sum(value.value, 0);
  }

  bool dereference(std::uint64_t size) {
    const auto address = stack_.pop();
    std::array<std::uint8_t, kWord> bytes{};
    if (!address || size == 0 || size > kWord) return false;
    const auto out = std::span{bytes}.first(size);
    if (context_.state.memory(TraceeAddr{*address}, out) != size) return false;
    stack_.push(load_le<std::uint64_t>(bytes, 0));
    return true;
  }

  /// Continues at the operation that a jump names by its distance in bytes.
  bool jump(const Dwarf_Op& op) {
    constexpr std::uint64_t kJumpBytes = 3;
    const std::uint64_t to = op.offset + kJumpBytes + op.number;
    for (std::size_t i = 0; i < ops_.size(); ++i) {
      if (ops_[i].offset != to) continue;
      at_ = i;
      return true;
    }
    return false;
  }

  bool piece(std::uint64_t size) {
    constexpr std::size_t kMostPieces = 64;
    if (size == 0 || size > kMostObjectBytes || pieces_.size() == kMostPieces) return false;
    has_pieces_ = true;
    LocationPiece out;
    finish_piece(out);  // If nothing was described, the piece has no value.
    out.size = size;
    pieces_.push_back(std::move(out));
    return true;
  }

  std::span<const Dwarf_Op> ops_;
  Dwarf_Attribute* attribute_;
  const ExpressionContext& context_;
  std::size_t at_ = 0;
  ExpressionStack stack_;
  std::optional<LocationPiece> current_;  ///< A location without its size.
  bool has_pieces_ = false;
  Location pieces_;
};

/// Copies from registers, whose knowledge is by bit.
void read_register(std::uint64_t number, FrameState& state, std::span<std::uint8_t> out,
                   std::vector<bool>& known, std::size_t first) {
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto lane = static_cast<unsigned>(i / kWord);
    FrameState::Known value;
    if (number < FrameState::kGeneral && lane == 0) {
      value = state.reg(static_cast<unsigned>(number));
    } else if (number >= FrameState::kFirstVector && lane < 2 &&
               number < FrameState::kFirstVector + FrameState::kVectors) {
      value = state.lane(static_cast<unsigned>(number) - FrameState::kFirstVector, lane);
    }
    const unsigned shift = kByteBits * static_cast<unsigned>(i % kWord);
    out[i] = static_cast<std::uint8_t>(value.value >> shift);
    known[first + i] = static_cast<std::uint8_t>(value.mask >> shift) == 0xff;
  }
}

void read_piece(const LocationPiece& piece, FrameState& state, std::span<std::uint8_t> out,
                std::vector<bool>& known, std::size_t first) {
  const auto set_known = [&](std::size_t count) {
    std::fill_n(known.begin() + static_cast<std::ptrdiff_t>(first), count, true);
  };
  switch (piece.kind) {
    case Kind::kUnknown:
      return;
    case Kind::kMemory:
      // An unknown byte hides only itself.
      for (std::size_t at = 0, tries = 0; at < out.size() && tries < kMostTries; ++tries) {
        const std::size_t got = state.memory(TraceeAddr{piece.value + at}, out.subspan(at));
        for (std::size_t i = at; i < at + got; ++i) known[first + i] = true;
        at += got + 1;
      }
      return;
    case Kind::kRegister:
      read_register(piece.value, state, out, known, first);
      return;
    case Kind::kValue: {
      std::array<std::uint8_t, kWord> bytes{};
      store_le(bytes.data(), piece.value);
      const std::size_t count = std::min(out.size(), bytes.size());
      std::copy_n(bytes.begin(), count, out.begin());
      set_known(count);
      return;
    }
    case Kind::kBytes: {
      const std::size_t count = std::min(out.size(), piece.bytes.size());
      std::copy_n(piece.bytes.begin(), count, out.begin());
      set_known(count);
      return;
    }
  }
}

}  // namespace

Location evaluate_location(std::span<const Dwarf_Op> ops, Dwarf_Attribute* attribute,
                           const ExpressionContext& context) {
  Run run{ops, attribute, context};
  return !ops.empty() && run.go() ? run.take() : Location{};
}

std::optional<std::uint64_t> evaluate_number(std::span<const Dwarf_Op> ops,
                                             std::optional<std::uint64_t> initial,
                                             const ExpressionContext& context) {
  Run run{ops, nullptr, context};
  if (initial) run.push(*initial);
  return run.go() ? run.number() : std::nullopt;
}

ObjectBytes read_object(const Location& location, std::size_t size, FrameState& state) {
  ObjectBytes out;
  size = std::min(size, kMostObjectBytes);
  out.bytes.resize(size);
  out.known.resize(size);
  const bool whole = location.size() == 1 && location.front().size == 0;
  if (whole && location.front().kind == Kind::kMemory) out.address = location.front().value;
  std::size_t at = 0;
  for (const LocationPiece& piece : location) {
    const std::size_t rest = size - at;
    const std::size_t count = piece.size == 0 ? rest : std::min(piece.size, rest);
    read_piece(piece, state, std::span{out.bytes}.subspan(at, count), out.known, at);
    at += count;
  }
  return out;
}

}  // namespace backtrail::decoder
