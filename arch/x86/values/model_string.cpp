// SPDX-License-Identifier: Apache-2.0
// String instructions, with and without repetition.
#include <Zydis/Zydis.h>

#include "arch/x86/values/model_builder.hpp"

namespace backtrail::arch::x86::values {
namespace {

struct StringForm {
  unsigned bytes = 0;
  bool reads_rsi = false;
  bool reads_rdi = false;
  bool writes_rdi = false;
  bool loads_rax = false;
  bool stores_rax = false;
};

std::optional<StringForm> form_of(ZydisMnemonic mnemonic) {
  switch (mnemonic) {
    case ZYDIS_MNEMONIC_MOVSB:
      return StringForm{1, true, false, true, false, false};
    case ZYDIS_MNEMONIC_MOVSW:
      return StringForm{2, true, false, true, false, false};
    case ZYDIS_MNEMONIC_MOVSD:
      return StringForm{4, true, false, true, false, false};
    case ZYDIS_MNEMONIC_MOVSQ:
      return StringForm{8, true, false, true, false, false};
    case ZYDIS_MNEMONIC_STOSB:
      return StringForm{1, false, false, true, false, true};
    case ZYDIS_MNEMONIC_STOSW:
      return StringForm{2, false, false, true, false, true};
    case ZYDIS_MNEMONIC_STOSD:
      return StringForm{4, false, false, true, false, true};
    case ZYDIS_MNEMONIC_STOSQ:
      return StringForm{8, false, false, true, false, true};
    case ZYDIS_MNEMONIC_LODSB:
      return StringForm{1, true, false, false, true, false};
    case ZYDIS_MNEMONIC_LODSW:
      return StringForm{2, true, false, false, true, false};
    case ZYDIS_MNEMONIC_LODSD:
      return StringForm{4, true, false, false, true, false};
    case ZYDIS_MNEMONIC_LODSQ:
      return StringForm{8, true, false, false, true, false};
    case ZYDIS_MNEMONIC_SCASB:
      return StringForm{1, false, true, false, false, false};
    case ZYDIS_MNEMONIC_SCASW:
      return StringForm{2, false, true, false, false, false};
    case ZYDIS_MNEMONIC_SCASD:
      return StringForm{4, false, true, false, false, false};
    case ZYDIS_MNEMONIC_SCASQ:
      return StringForm{8, false, true, false, false, false};
    case ZYDIS_MNEMONIC_CMPSB:
      return StringForm{1, true, true, false, false, false};
    case ZYDIS_MNEMONIC_CMPSW:
      return StringForm{2, true, true, false, false, false};
    case ZYDIS_MNEMONIC_CMPSD:
      return StringForm{4, true, true, false, false, false};
    case ZYDIS_MNEMONIC_CMPSQ:
      return StringForm{8, true, true, false, false, false};
    default:
      return std::nullopt;
  }
}

bool is_repeated(const Decoded& decoded) {
  return decoded.has(ZYDIS_ATTRIB_HAS_REP | ZYDIS_ATTRIB_HAS_REPE | ZYDIS_ATTRIB_HAS_REPNE);
}

/// Returns the form of an instruction with 64-bit addresses in the usual segments; nullopt for
/// others.
std::optional<StringForm> usual_form(const Decoded& decoded) {
  for (const ZydisDecodedOperand& operand : decoded.all()) {
    const bool other =
        operand.type == ZYDIS_OPERAND_TYPE_MEMORY &&
        (operand.mem.segment == ZYDIS_REGISTER_FS || operand.mem.segment == ZYDIS_REGISTER_GS);
    if (other) return std::nullopt;
  }
  return decoded.insn.address_width == 64 ? form_of(decoded.insn.mnemonic) : std::nullopt;
}

class StringModel {
 public:
  StringModel(ModelBuilder& b, const StringForm& form) : b_{b}, form_{form}, down_{b.temp()} {
    b.equal(down_, b.slot(kFlagsSlot), 1, 0, kDf);
  }

  void once() {
    const auto step = static_cast<std::int64_t>(form_.bytes);
    const Ref delta = b_.temp();
    b_.op(Op::kSelect, 64,
          {delta, b_.constant(static_cast<std::uint64_t>(-step)), down_, b_.constant(form_.bytes)});
    transfer();
    advance(delta);
    if (compares()) b_.new_flags();
  }

  void repeated() {
    const auto [lowest, total] = repeat(compares() ? b_.temp() : b_.constant(0));
    if (form_.writes_rdi) {
      b_.model().accesses.push_back({AccessKind::kRangeStore, 0, lowest, total, 0});
      if (form_.stores_rax) {
        b_.model().accesses.back().size = static_cast<std::uint8_t>(form_.bytes);
        b_.model().accesses.back().fill = b_.slot(kRax);
      }
    }
  }

  /// Models repetitions that were suspended. Registers are those after the last complete one (SDM
  /// vol. 2, REP), but the one that was suspended may have stored in part.
  void interrupted() {
    const auto [lowest, total] = repeat(b_.temp());
    if (!form_.writes_rdi) return;
    const Ref bytes = b_.plus(total, 2 * kReach);
    b_.model().accesses.push_back(
        {AccessKind::kRangeStore, 0, lowest, bytes, -static_cast<std::int64_t>(kReach)});
  }

 private:
  /// More than one repetition stores at once.
  static constexpr std::uint64_t kReach = 64;

  [[nodiscard]] bool compares() const { return form_.reads_rdi; }

  /// Models repetitions after which rcx is `left`. Returns the lowest address that is stored to and
  /// the number of bytes, if it stores.
  std::pair<Ref, Ref> repeat(Ref left) {
    b_.model().restartable = true;
    const Ref done = b_.temp();
    b_.op(Op::kAdd, 64, {b_.slot(kRcx), done, left});
    const Ref total = scaled(done);
    const Ref negative = b_.temp();
    b_.op(Op::kAdd, 64, {b_.constant(0), negative, total});
    const Ref delta = b_.temp();
    b_.op(Op::kSelect, 64, {delta, negative, down_, total});
    b_.define(kRcx, left);
    if (compares()) b_.new_flags();
    if (form_.loads_rax) b_.define_unknown(kRax);
    const auto [rsi, rdi] = advance(delta);
    if (!form_.writes_rdi) return {};
    const Ref lowest = b_.temp();
    b_.op(Op::kSelect, 64, {lowest, b_.plus(rdi, form_.bytes), down_, b_.slot(kRdi)});
    return {lowest, total};
  }

  Ref scaled(Ref count) {
    if (form_.bytes == 1) return count;
    const unsigned by = form_.bytes == 2 ? 1 : form_.bytes == 4 ? 2 : 3;
    const Ref total = b_.temp();
    b_.initially(total, 0, low_bits(by));
    b_.equal(total, count, 64 - by, by, 0);
    return total;
  }

  std::pair<Ref, Ref> advance(Ref delta) {
    Ref rsi, rdi;
    if (form_.reads_rsi) b_.define(kRsi, rsi = b_.sum(b_.slot(kRsi), delta));
    if (form_.reads_rdi || form_.writes_rdi) b_.define(kRdi, rdi = b_.sum(b_.slot(kRdi), delta));
    return {rsi, rdi};
  }

  void transfer() {
    const unsigned bits = form_.bytes * 8;
    Ref value = b_.slot(kRax);
    if (form_.reads_rsi) {
      value = b_.temp_zero_above(bits);
      b_.load({b_.slot(kRsi), 0}, value, form_.bytes);
    }
    if (form_.reads_rdi) {
      const Ref other = b_.temp_zero_above(bits);
      b_.load({b_.slot(kRdi), 0}, other, form_.bytes);
    }
    if (form_.writes_rdi) b_.store({b_.slot(kRdi), 0}, value, form_.bytes);
    if (!form_.loads_rax) return;
    const Ref rax = bits >= 32 ? value : b_.temp();
    if (bits < 32) {
      b_.equal(rax, value, bits);
      b_.equal(rax, b_.slot(kRax), 64 - bits, bits, bits);
    }
    b_.define(kRax, rax);
  }

  ModelBuilder& b_;
  StringForm form_;
  Ref down_;
};

}  // namespace

bool model_string(ModelBuilder& b) {
  const Decoded& decoded = b.decoded();
  if (decoded.insn.meta.category != ZYDIS_CATEGORY_STRINGOP) return false;
  const auto form = usual_form(decoded);
  const bool repeats = is_repeated(decoded);
  if (!form) {
    b.model_unknown();
    b.store_anywhere();
    b.model().restartable = repeats;
    return true;
  }
  StringModel model{b, *form};
  if (repeats) {
    model.repeated();
  } else {
    model.once();
  }
  return true;
}

bool model_interrupted_string(ModelBuilder& b) {
  const Decoded& decoded = b.decoded();
  if (decoded.insn.meta.category != ZYDIS_CATEGORY_STRINGOP || !is_repeated(decoded)) return false;
  const auto form = usual_form(decoded);
  if (form) StringModel{b, *form}.interrupted();
  return form.has_value();
}

}  // namespace backtrail::arch::x86::values
