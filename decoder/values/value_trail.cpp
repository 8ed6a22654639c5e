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

bool is_flags(Op op) {
  return op == Op::kFlagsAdd || op == Op::kFlagsSub || op == Op::kFlagsResult ||
         op == Op::kCondition || op == Op::kIsZero;
}

class Trail {
 public:
  explicit Trail(ValueHistory& history) : history_{history} {}

  std::vector<TrailPart> take() { return std::move(parts_); }

  void memory(std::size_t position, TraceeAddr address, unsigned bytes) {
    if (is_full(position)) return;
    const auto found = history_.last_write(position, address, bytes);
    if (!found) return end(Kind::kBeginning, history_.horizon(), read(position, address, bytes));
    if (found->kind == LastWrite::Kind::kOthers) {
      return end(Kind::kOthers, found->step, read(position, address, bytes));
    }
    const Known value = read(found->step + 1, address, bytes);
    if (found->kind == LastWrite::Kind::kMapping) return end(Kind::kMapped, found->step, value);
    if (found->kind == LastWrite::Kind::kSignal) return end(Kind::kSignal, found->step, value);
    const auto step = history_.step(found->step);
    if (!step) return end(Kind::kBeginning, found->step + 1, value);
    const InsnModel& model = history_.model(step->pc);
    if (model.special == cpu::Special::kSystemCall) return end(Kind::kKernel, found->step, value);
    if (!found->is_certain) return end(Kind::kMayBeStored, found->step, value);
    const cpu::AccessModel& store = model.accesses[found->access];
    const auto at = history_.access_address(found->step, found->access);
    if (!at) return end(Kind::kMayBeStored, found->step, value);
    const bool covers = *at <= address && *at + store.size >= address + bytes;
    TrailPart part = made(Kind::kStored, found->step, value, kByteBits * bytes);
    part.address = at->value();
    part.is_partial = !covers;
    parts_.push_back(part);
    const unsigned skipped = covers ? static_cast<unsigned>(address - *at) : 0;
    const unsigned width = covers ? bytes : store.size;
    follow(model, store.value, found->step, kByteBits * skipped, kByteBits * width);
  }

  void reg(std::size_t position, Slot slot, unsigned bits) {
    for (std::size_t step = position; step > 0;) {
      if (history_.interrupted_before(step)) {
        const bool known = history_.step(step - 1).has_value();
        return end(known ? Kind::kSignal : Kind::kBeginning, step, history_.reg(step, slot));
      }
      --step;
      const auto executed = history_.step(step);
      if (!executed) return end(Kind::kBeginning, step + 1, history_.reg(step + 1, slot));
      const InsnModel& model = history_.model(executed->pc);
      const Known value = history_.reg(step + 1, slot);
      if (model.special == cpu::Special::kSystemCall) {
        if (slot == cpu::kRax) return end(Kind::kCallResult, step, value);
        if (slot == cpu::kRcx || slot == cpu::kR11) return end(Kind::kUntracked, step, value);
        continue;
      }
      const auto found = std::ranges::find(model.definitions, slot, &InsnModel::Definition::slot);
      if (found == model.definitions.end()) continue;
      value_ = value;
      return follow(model, found->ref, step, 0, bits);
    }
    end(Kind::kBeginning, 0, history_.reg(0, slot));
  }

 private:
  static TrailPart made(Kind kind, std::size_t step, const Known& value, unsigned bits) {
    TrailPart part;
    part.kind = kind;
    part.step = step;
    part.value = value;
    part.bits = bits;
    return part;
  }
  void end(Kind kind, std::size_t step, const Known& value) {
    parts_.push_back(made(kind, step, value, 64));
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
  Known input(const InsnModel& model, Ref ref, std::size_t step) {
    switch (ref.kind) {
      case Ref::Kind::kSlot:
        return history_.reg(step, ref.index);
      case Ref::Kind::kConstant:
        return cpu::known(model.constants[ref.index]);
      case Ref::Kind::kTemp:
        if (const auto load = load_of(model, ref)) {
          const auto at = history_.access_address(step, *load);
          return at ? read(step, *at, model.accesses[*load].size) : Known{};
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

  /// Follows bits [shift, shift + bits) of a value that the instruction at `step` defines.
  void follow(const InsnModel& model, Ref ref, std::size_t step, unsigned shift, unsigned bits) {
    if (is_full(step)) return;
    if (ref.kind == Ref::Kind::kConstant) {
      return end(Kind::kConstant, step,
                 {model.constants[ref.index] >> shift & cpu::low_bits(bits), cpu::low_bits(bits)});
    }
    if (ref.kind == Ref::Kind::kSlot) {
      if (shift != 0) return end(Kind::kUntracked, step, {});
      return reg(step, ref.index, bits);
    }
    if (ref.kind != Ref::Kind::kTemp) return end(Kind::kUntracked, step, {});
    if (const auto load = load_of(model, ref)) return loaded(model, *load, step, shift, bits);
    made_by(model, ref, step, shift, bits);
  }

  void loaded(const InsnModel& model, std::uint32_t load, std::size_t step, unsigned shift,
              unsigned bits) {
    const auto at = history_.access_address(step, load);
    if (!at) return end(Kind::kUnknownAddress, step, {});
    const unsigned size = std::min<unsigned>(model.accesses[load].size, bits / kByteBits);
    const TraceeAddr address = *at + shift / kByteBits;
    TrailPart part = made(Kind::kLoaded, step, read(step, address, size), kByteBits * size);
    part.address = address.value();
    parts_.push_back(part);
    memory(step, address, size);
  }

  void made_by(const InsnModel& model, Ref ref, std::size_t step, unsigned shift, unsigned bits) {
    std::vector<Ref> inputs;
    for (const MicroOp& op : model.ops) {
      if (is_flags(op.op) || std::ranges::find(op.refs, ref) == op.refs.end()) continue;
      // A copy, of all bits that are followed.
      const bool copies = op.op == Op::kEqual && op.refs[0] == ref && op.p <= shift &&
                          shift + bits <= unsigned{op.p} + op.width && op.q == 0;
      if (copies) return follow(model, op.refs[1], step, shift - op.p, bits);
      for (const Ref other : op.refs) {
        if (other.none() || other == ref) continue;
        if (std::ranges::find(inputs, other) == inputs.end()) inputs.push_back(other);
      }
    }
    std::vector<Ref> variable;
    std::ranges::copy_if(inputs, std::back_inserter(variable), [](const Ref& input) {
      return input.kind == Ref::Kind::kSlot || input.kind == Ref::Kind::kTemp;
    });
    TrailPart part = made(Kind::kComputed, step, std::exchange(value_, Known{}), bits);
    for (const Ref each : inputs) part.inputs.push_back(input(model, each, step));
    const bool is_simple = variable.size() == 1 && shift == 0 &&
                           (variable[0].kind == Ref::Kind::kSlot || load_of(model, variable[0]));
    if (inputs.empty()) return end(Kind::kUntracked, step, part.value);
    if (!is_simple) part.kind = variable.empty() ? Kind::kConstant : Kind::kSeveral;
    parts_.push_back(part);
    if (is_simple) follow(model, variable[0], step, 0, bits);
  }

  ValueHistory& history_;
  std::vector<TrailPart> parts_;
  Known value_;  ///< Value of the register that is being followed.
};

}  // namespace

std::vector<TrailPart> trail_of_memory(ValueHistory& history, std::size_t position,
                                       TraceeAddr address, unsigned bytes) {
  Trail trail{history};
  trail.memory(position, address, bytes);
  return trail.take();
}

std::vector<TrailPart> trail_of_register(ValueHistory& history, std::size_t position, Slot slot) {
  Trail trail{history};
  constexpr unsigned kWidth = 64;
  trail.reg(position, slot, kWidth);
  return trail.take();
}

}  // namespace backtrail::decoder::values
