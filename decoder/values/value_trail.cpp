// SPDX-License-Identifier: Apache-2.0
#include "decoder/values/value_trail.hpp"

#include <algorithm>
#include <array>
#include <optional>

#include "arch/base/bytes.hpp"

namespace backtrail::decoder::values {
namespace {

using cpu::AccessKind;
using cpu::InsnModel;
using cpu::MicroOp;
using cpu::Op;
using cpu::Ref;
using Kind = TrailPart::Kind;

constexpr std::size_t kMostParts = 40;
constexpr unsigned kByteBits = 8;
constexpr unsigned kRegisterBits = 64;

bool is_flags(Op op) {
  return op == Op::kFlagsAdd || op == Op::kFlagsSub || op == Op::kFlagsResult ||
         op == Op::kCondition || op == Op::kIsZero;
}

/// Returns true for a copy that leaves bytes whole; a rotation may not.
bool moves_bytes(const MicroOp& copy) {
  return copy.p % kByteBits == copy.q % kByteBits;
}

/// Returns true for the operand that says how far a shift goes.
bool is_count(const MicroOp& op, unsigned operand) {
  const bool is_shift =
      op.op == Op::kShiftLeft || op.op == Op::kShiftRight || op.op == Op::kShiftRightArithmetic;
  return is_shift && operand == 2;
}

/// Returns how many of its inputs' low bits an operation uses.
unsigned input_bits(const MicroOp& op) {
  switch (op.op) {
    case Op::kAdd:
    case Op::kMultiply:
    case Op::kNot:
    case Op::kXor:
    case Op::kAnd:
    case Op::kOr:
    case Op::kAndNot:
    case Op::kByteSwap:
    case Op::kShiftLeft:
    case Op::kShiftRight:
    case Op::kShiftRightArithmetic:
    case Op::kSelect:
      return op.width;
    case Op::kEvaluate:
      return op.q == 0 ? kRegisterBits : op.q;
    default:
      return kRegisterBits;
  }
}

/// Bits [first, first + count) of a register or temporary.
struct Bits {
  unsigned first = 0;
  unsigned count = kRegisterBits;

  [[nodiscard]] unsigned end() const { return first + count; }
  /// Returns true if some bit is in [from, to).
  [[nodiscard]] bool meets(unsigned from, unsigned to) const { return first < to && end() > from; }
  [[nodiscard]] Known of(const Known& whole) const {
    if (first >= kRegisterBits) return {};
    const std::uint64_t mask = whole.mask >> first & cpu::low_bits(count);
    return {whole.value >> first & mask, mask};
  }
  /// Returns the smallest range that has all bits of both.
  [[nodiscard]] Bits with(const Bits& other) const {
    const unsigned low = std::min(first, other.first);
    return {low, std::max(end(), other.end()) - low};
  }
};

/// An input of an operation.
struct Source {
  Ref ref;
  Bits bits;
};

class Trail {
 public:
  explicit Trail(ValueHistory& history) : history_{history} {}

  std::vector<TrailPart> take() { return std::move(parts_); }

  void memory(std::size_t position, TraceeAddr address, unsigned bytes) {
    if (is_full(position)) return;
    const auto found = history_.last_write(position, address, bytes);
    if (!found) {
      return beginning(std::min(position, history_.horizon()), read(position, address, bytes));
    }
    if (found->kind == LastWrite::Kind::kOthers) {
      return end(Kind::kOthers, found->step, read(position, address, bytes));
    }
    if (found->kind == LastWrite::Kind::kHalfDone) {
      return end(Kind::kHalfDone, found->step, read(position, address, bytes));
    }
    const Known value = read(found->step + 1, address, bytes);
    if (found->kind == LastWrite::Kind::kMapping) return end(Kind::kMapped, found->step, value);
    if (found->kind == LastWrite::Kind::kSignal) return end(Kind::kSignal, found->step, value);
    const auto step = history_.step(found->step);
    if (!step) return beginning(found->step + 1, value);
    const InsnModel& model = history_.model(*step);
    if (model.special == cpu::Special::kSystemCall) return end(Kind::kKernel, found->step, value);
    const auto at = history_.access_address(found->step, found->access);
    if (!found->is_certain || !at) return end(Kind::kMayBeStored, found->step, value);
    stored(model.accesses[found->access], *at, found->step, address, bytes);
  }

  void reg(std::size_t position, Slot slot, Bits bits) {
    const auto end_here = [&](Kind kind, std::size_t step, std::size_t seen) {
      end(kind, step, bits.of(history_.reg(seen, slot)), bits.count);
    };
    if (const InsnModel* half_done = history_.half_done_at(position);
        half_done != nullptr && definition_of(*half_done, slot)) {
      return end_here(Kind::kHalfDone, position, position);
    }
    for (std::size_t step = position; step > 0;) {
      if (history_.interrupted_before(step)) {
        if (history_.step(step - 1)) return end_here(Kind::kSignal, step, step);
        return beginning(step, bits.of(history_.reg(step, slot)), bits.count);
      }
      --step;
      const auto executed = history_.step(step);
      if (!executed) return beginning(step + 1, bits.of(history_.reg(step + 1, slot)), bits.count);
      const InsnModel& model = history_.model(*executed);
      if (model.special == cpu::Special::kSystemCall) {
        if (is_handler_return(*executed, model)) {
          return end_here(Kind::kHandlerReturn, step, step + 1);
        }
        if (slot == cpu::kRax) return end_here(Kind::kCallResult, step, step + 1);
        if (slot == cpu::kRcx || slot == cpu::kR11) {
          return end_here(Kind::kUntracked, step, step + 1);
        }
        continue;
      }
      const auto found = definition_of(model, slot);
      if (!found) continue;
      return follow(model, *found, step, bits, bits.of(history_.reg(step + 1, slot)));
    }
    end_here(Kind::kBeginning, 0, 0);
  }

 private:
  /// Returns what the register is after the instruction; nullopt if it is left alone. Of several
  /// definitions the last one counts.
  static std::optional<Ref> definition_of(const InsnModel& model, Slot slot) {
    const auto found =
        std::find_if(model.definitions.rbegin(), model.definitions.rend(),
                     [slot](const InsnModel::Definition& made) { return made.slot == slot; });
    return found == model.definitions.rend() ? std::nullopt : std::optional{found->ref};
  }
  static TrailPart made(Kind kind, std::size_t step, const Known& value, unsigned bits) {
    TrailPart part;
    part.kind = kind;
    part.step = step;
    part.value = value;
    part.bits = bits;
    return part;
  }
  void end(Kind kind, std::size_t step, const Known& value, unsigned bits = kRegisterBits) {
    parts_.push_back(made(kind, step, value, bits));
  }
  /// Ends where nothing is known before `step`.
  void beginning(std::size_t step, const Known& value, unsigned bits = kRegisterBits) {
    const auto hiding = history_.hiding_step();
    if (!hiding || hiding->number + 1 != step) return end(Kind::kBeginning, step, value, bits);
    end(Kind::kUnknownEffects, hiding->number, value, bits);
  }
  bool is_full(std::size_t position) {
    if (parts_.size() < kMostParts) return false;
    end(Kind::kTooLong, position, {});
    return true;
  }

  /// Returns up to 8 bytes of memory.
  Known read(std::size_t position, TraceeAddr address, unsigned bytes) {
    std::array<std::uint8_t, sizeof(std::uint64_t)> out{};
    std::array<std::uint8_t, sizeof(std::uint64_t)> known{};
    const std::size_t count = std::min<std::size_t>(bytes, out.size());
    history_.memory(position, address, std::span{out}.first(count), std::span{known}.first(count));
    Known value{load_le<std::uint64_t>(out, 0), load_le<std::uint64_t>(known, 0)};
    value.value &= value.mask;
    return value;
  }

  /// Returns a value that the instruction at `step` uses.
  Known input(const InsnModel& model, const Source& source, std::size_t step) {
    const Ref ref = source.ref;
    switch (ref.kind) {
      case Ref::Kind::kSlot:
        return source.bits.of(history_.reg(step, ref.index));
      case Ref::Kind::kConstant:
        return source.bits.of(cpu::known(model.constants[ref.index]));
      case Ref::Kind::kTemp:
        if (const auto load = load_of(model, ref)) {
          const auto at = history_.access_address(step, *load);
          return at ? source.bits.of(read(step, *at, model.accesses[*load].size)) : Known{};
        }
        return {};
      default:
        return {};
    }
  }

  static std::optional<std::uint32_t> load_of(const InsnModel& model, Ref ref) {
    for (std::uint32_t i = 0; i < model.accesses.size(); ++i) {
      const auto& access = model.accesses[i];
      if (access.kind == AccessKind::kLoad && access.value == ref) return i;
    }
    return std::nullopt;
  }

  /// Follows the bytes of [address, address + bytes) that were stored at `at`.
  void stored(const cpu::AccessModel& store, TraceeAddr at, std::size_t step, TraceeAddr address,
              unsigned bytes) {
    const TraceeAddr first = std::max(at, address);
    const TraceeAddr last = std::min(at + store.size, address + bytes);
    const auto count = static_cast<unsigned>(last - first);
    const Bits bits{kByteBits * static_cast<unsigned>(first - at), kByteBits * count};
    const Known value = read(step + 1, first, count);
    TrailPart part = made(Kind::kStored, step, value, bits.count);
    part.address = first.value();
    part.is_partial = count != bytes;
    parts_.push_back(part);
    const auto executed = history_.step(step);
    if (executed) follow(history_.model(*executed), store.value, step, bits, value);
  }

  /// Follows bits of what the instruction at `step` makes. They are `value`.
  void follow(const InsnModel& model, Ref ref, std::size_t step, Bits bits, const Known& value) {
    if (is_full(step)) return;
    if (ref.kind == Ref::Kind::kConstant) {
      return end(Kind::kConstant, step, bits.of(cpu::known(model.constants[ref.index])),
                 bits.count);
    }
    if (ref.kind == Ref::Kind::kSlot) return reg(step, ref.index, bits);
    if (ref.kind != Ref::Kind::kTemp) return end(Kind::kUntracked, step, value, bits.count);
    Known always;
    for (const InsnModel::Initial& initial : model.initials) {
      if (initial.temp == ref) always.learn(initial.value, initial.mask);
    }
    always = bits.of(always);
    if (always.all(bits.count)) return end(Kind::kConstant, step, always, bits.count);
    if (const auto load = load_of(model, ref)) return loaded(model, *load, step, bits);
    made_by(model, ref, step, bits, value);
  }

  void loaded(const InsnModel& model, std::uint32_t load, std::size_t step, Bits bits) {
    const auto at = history_.access_address(step, load);
    if (!at) return end(Kind::kUnknownAddress, step, {});
    const unsigned size = model.accesses[load].size;
    const unsigned first = bits.first / kByteBits;
    const unsigned last = std::min(size, (bits.end() + kByteBits - 1) / kByteBits);
    if (first >= last) return end(Kind::kUntracked, step, {}, bits.count);
    const TraceeAddr address = *at + first;
    const unsigned count = last - first;
    TrailPart part = made(Kind::kLoaded, step, read(step, address, count), kByteBits * count);
    part.address = address.value();
    part.used_from = bits.first % kByteBits;
    parts_.push_back(part);
    memory(step, address, count);
  }

  static bool has(const MicroOp& op, Ref ref) {
    return std::ranges::find(op.refs, ref) != op.refs.end();
  }

  /// Returns what the bits are made from. Operations that have them as their result count; if there
  /// are none, so do those that they are an operand of: relations hold in both directions.
  /// @param user  Operations that have it do not count; none: all count.
  static std::vector<Source> sources_of(const InsnModel& model, Ref ref, Bits bits, Ref user = {}) {
    std::vector<Source> sources;
    const auto add = [&](Ref other, Bits its) {
      if (other.none() || other == ref) return;
      if (const auto load = load_of(model, other)) {
        const unsigned size = kByteBits * model.accesses[*load].size;
        its.count = std::min(its.end(), size) - std::min(its.first, size);
      }
      note(sources, {other, its});
    };
    const bool has_result = std::ranges::any_of(
        model.ops, [ref](const MicroOp& op) { return !is_flags(op.op) && op.refs[0] == ref; });
    for (const MicroOp& op : model.ops) {
      if (is_flags(op.op) || !has(op, ref) || (!user.none() && has(op, user))) continue;
      if (has_result && op.refs[0] != ref) continue;
      if (op.op == Op::kEqual && op.refs[0] == ref && !moves_bytes(op)) {
        if (bits.meets(op.p, unsigned{op.p} + op.width)) {
          add(op.refs[1], {0, unsigned{op.q} + op.width});
        }
      } else if (op.op == Op::kEqual && op.refs[0] == ref) {
        const unsigned from = std::max<unsigned>(bits.first, op.p);
        const unsigned to = std::min(bits.end(), unsigned{op.p} + op.width);
        if (from < to) add(op.refs[1], {from - op.p + op.q, to - from});
      } else if (op.op == Op::kFill && op.refs[0] == ref) {
        if (bits.meets(op.p, op.width)) add(op.refs[1], {0, op.q + 1U});
      } else {
        for (unsigned i = 0; i < op.refs.size(); ++i) {
          // The condition of a selection is no part of the result.
          if (op.op == Op::kSelect && i == 2) continue;
          add(op.refs[i], {0, is_count(op, i) ? kByteBits : input_bits(op)});
        }
      }
    }
    return sources;
  }

  /// Adds a source, or bits of one that is there already.
  static void note(std::vector<Source>& sources, const Source& source) {
    const auto known = std::ranges::find(sources, source.ref, &Source::ref);
    if (known == sources.end()) {
      sources.push_back(source);
    } else {
      known->bits = known->bits.with(source.bits);
    }
  }

  /// Adds a source, or instead of what the instruction itself makes that which it makes it from.
  static void expand(const InsnModel& model, const Source& source, Ref user, unsigned depth,
                     std::vector<Source>& out) {
    constexpr unsigned kMostDepth = 4;
    std::vector<Source> inner;
    if (source.ref.kind == Ref::Kind::kTemp && !load_of(model, source.ref) && depth < kMostDepth) {
      inner = sources_of(model, source.ref, source.bits, user);
    }
    if (inner.empty()) note(out, source);
    for (const Source& each : inner) expand(model, each, source.ref, depth + 1, out);
  }

  void made_by(const InsnModel& model, Ref ref, std::size_t step, Bits bits, const Known& value) {
    const std::vector<Source> direct = sources_of(model, ref, bits);
    if (direct.empty()) return end(Kind::kUntracked, step, value, bits.count);
    // Another operation may make some of the bits from others of the same source.
    const auto copies = [&](const MicroOp& op) {
      return op.op == Op::kEqual && op.refs[0] == ref && moves_bytes(op) && op.p <= bits.first &&
             bits.end() <= unsigned{op.p} + op.width &&
             direct[0].bits.first == bits.first - op.p + op.q && direct[0].bits.count <= bits.count;
    };
    if (direct.size() == 1 && std::ranges::any_of(model.ops, copies)) {
      return follow(model, direct[0].ref, step, direct[0].bits, value);
    }
    std::vector<Source> sources;
    for (const Source& each : direct) expand(model, each, ref, 0, sources);
    std::vector<Source> variable;
    std::ranges::copy_if(sources, std::back_inserter(variable), [](const Source& source) {
      return source.ref.kind == Ref::Kind::kSlot || source.ref.kind == Ref::Kind::kTemp;
    });
    TrailPart part = made(Kind::kComputed, step, value, bits.count);
    for (const Source& each : sources) {
      part.inputs.push_back({input(model, each, step), each.bits.count});
    }
    if (variable.size() == 1) {
      const auto followed = std::ranges::find(sources, variable[0].ref, &Source::ref);
      part.followed = static_cast<std::size_t>(followed - sources.begin());
    }
    const bool is_simple = variable.size() == 1 && (variable[0].ref.kind == Ref::Kind::kSlot ||
                                                    load_of(model, variable[0].ref));
    if (!is_simple) {
      part.kind = variable.empty()      ? Kind::kConstant
                  : variable.size() > 1 ? Kind::kSeveral
                                        : Kind::kUntracked;
    }
    parts_.push_back(part);
    if (!is_simple) return;
    follow(model, variable[0].ref, step, variable[0].bits, input(model, variable[0], step));
  }

  ValueHistory& history_;
  std::vector<TrailPart> parts_;
};

}  // namespace

std::vector<TrailPart> trail_of_memory(ValueHistory& history, std::size_t position,
                                       TraceeAddr address, unsigned bytes) {
  Trail trail{history};
  trail.memory(position, address, bytes);
  return trail.take();
}

std::vector<TrailPart> trail_of_register(ValueHistory& history, std::size_t position, Slot slot,
                                         unsigned bits) {
  Trail trail{history};
  trail.reg(position, slot, {0, bits});
  return trail.take();
}

}  // namespace backtrail::decoder::values
