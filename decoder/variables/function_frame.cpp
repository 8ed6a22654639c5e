// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/function_frame.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include <dwarf.h>

#include "decoder/variables/function_lines.hpp"
#include "decoder/variables/type_facts.hpp"
#include "decoder/variables/value_text.hpp"

namespace backtrail::decoder {
namespace {

/// Variables shown of a frame.
constexpr std::size_t kMostVariables = 40;
/// Bytes below the stack pointer that a function may use (System V ABI).
constexpr std::uint64_t kRedZone = 128;
/// Distance of the CFA from rbp in a function that keeps a frame pointer.
constexpr std::uint64_t kFramePointerToCfa = 16;

/// The registers that pass arguments, by DWARF number: rdi, rsi, rdx, rcx, r8, r9, xmm0 to xmm7.
bool passes_arguments(std::uint64_t number) {
  constexpr std::array<std::uint64_t, 6> kGeneral{5, 4, 1, 2, 8, 9};
  constexpr unsigned kVectors = 8;
  return std::ranges::find(kGeneral, number) != kGeneral.end() ||
         (number >= FrameState::kFirstVector && number < FrameState::kFirstVector + kVectors);
}

bool is_expression(Dwarf_Attribute* attribute) {
  switch (dwarf_whatform(attribute)) {
    case DW_FORM_exprloc:
    case DW_FORM_block:
    case DW_FORM_block1:
    case DW_FORM_block2:
    case DW_FORM_block4:
      return true;
    default:
      return false;
  }
}

/// Returns where the entry that a variable is an instance of is in the file, or the variable
/// itself.
Dwarf_Off origin_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Die origin{};
  if (dwarf_attr(die, DW_AT_abstract_origin, &attribute) != nullptr &&
      dwarf_formref_die(&attribute, &origin) != nullptr) {
    return dwarf_dieoffset(&origin);
  }
  return dwarf_dieoffset(die);
}

/// Returns the only operation of an expression; nullptr if there are several.
const Dwarf_Op* only_op(const Dwarf_Op* ops, std::size_t count) {
  return count == 1 ? ops : nullptr;
}

bool has_option(std::string_view producer, std::string_view option) {
  const std::size_t at = producer.find(option);
  return at != std::string_view::npos;
}

/// Returns true if a compiler that lists its options was told to optimise.
bool optimises(std::string_view producer) {
  for (std::size_t at = 0; (at = producer.find(" -O", at)) != std::string_view::npos; ++at) {
    constexpr std::size_t kOption = 3;
    const std::string_view level = producer.substr(at + kOption, 1);
    if (level != "0") return true;
  }
  return false;
}

/// Returns true if a parameter's only location is in the part of the frame that the function itself
/// makes, not in the caller's.
bool is_in_frame(Dwarf_Attribute* location) {
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_getlocation(location, &ops, &count) != 0) return false;
  const Dwarf_Op* op = only_op(ops, count);
  return op != nullptr && op->atom == DW_OP_fbreg && static_cast<Dwarf_Sword>(op->number) < 0;
}

}  // namespace

FunctionFrame::FunctionFrame(const FunctionPlace& place, FrameState& state, WorkLimit& work)
    : place_{place}, state_{state}, work_{work} {
  if (place_.scopes.empty()) return;
  Dwarf_Die function = place_.scopes.front();
  Dwarf_Addr first = 0;
  if (dwarf_entrypc(&function, &first) == 0) {
    first_ = first;
    after_prologue_ = end_of_prologue(place_.unit, function);
  }
  judge_compiler();
}

/// Decides whether variables that have one place all the time are there all the time.
void FunctionFrame::judge_compiler() {
  Dwarf_Die unit = place_.unit;
  Dwarf_Attribute attribute;
  const char* text = nullptr;
  if (dwarf_attr(&unit, DW_AT_producer, &attribute) != nullptr) text = dwarf_formstring(&attribute);
  const std::string_view producer = text == nullptr ? "" : text;
  const bool is_gnu = producer.starts_with("GNU ");
  // Code of sanitizers keeps variables elsewhere; gcc does not say where.
  moves_variables_ =
      is_gnu && (has_option(producer, "-fsanitize=") || has_option(producer, "-fno-var-tracking"));
  bool has_list = false;
  bool stores_a_parameter = false;
  for_each_child(place_.scopes.front(), work_, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_formal_parameter && tag != DW_TAG_variable) return true;
    if (dwarf_attr(&child, DW_AT_location, &attribute) == nullptr) {
      has_list = has_list || tag == DW_TAG_formal_parameter;
    } else if (!is_expression(&attribute)) {
      has_list = true;
    } else if (tag == DW_TAG_formal_parameter) {
      stores_a_parameter = stores_a_parameter || is_in_frame(&attribute);
    }
    return !has_list;
  });
  bool has_frame_pointer = false;
  if (Dwarf_Die function = place_.scopes.front();
      dwarf_attr_integrate(&function, DW_AT_frame_base, &attribute) != nullptr) {
    Dwarf_Op* ops = nullptr;
    std::size_t count = 0;
    const Dwarf_Op* op =
        dwarf_getlocation(&attribute, &ops, &count) == 0 ? only_op(ops, count) : nullptr;
    has_frame_pointer = op != nullptr && op->atom == DW_OP_reg6;
  }
  // Only optimised functions have a description of all their calls and, by gcc, those that make
  // none. Of these, one that stores its parameters to its frame for good is not optimised.
  Dwarf_Die function = place_.scopes.front();
  const bool describes_calls =
      !(is_gnu && stores_a_parameter) &&
      (has_flag(&function, DW_AT_call_all_calls) || has_flag(&function, DW_AT_GNU_all_call_sites));
  // gcc lists its options unless it was told not to; the target's are always among them.
  const bool is_plain_gnu = is_gnu && has_option(producer, " -m") && !optimises(producer);
  const bool is_plain_clang = has_option(producer, "clang") && has_frame_pointer;
  optimised_ = has_list || describes_calls || !(is_plain_gnu || is_plain_clang);
}

ExpressionContext FunctionFrame::context() {
  return {.state = state_,
          .bias = place_.bias,
          .cfa = [this] { return cfa(); },
          .frame_base = [this] { return frame_base(); },
          .work = work_};
}

std::optional<std::uint64_t> FunctionFrame::cfa() {
  return place_.rules.cfa(state_, work_);
}

/// Returns the frame base only where it is what the whole function takes it for: a register is not
/// before the function has set it and after it has given it back.
std::optional<std::uint64_t> FunctionFrame::frame_base() {
  if (place_.scopes.empty()) return std::nullopt;
  Dwarf_Die function = place_.scopes.front();
  Dwarf_Attribute attribute;
  Dwarf_Op* ops = nullptr;
  std::size_t count = 0;
  if (dwarf_attr_integrate(&function, DW_AT_frame_base, &attribute) == nullptr ||
      dwarf_getlocation_addr(&attribute, place_.address, &ops, &count, 1) != 1) {
    return std::nullopt;
  }
  const Dwarf_Op* op = only_op(ops, count);
  if (op == nullptr) return std::nullopt;
  if (op->atom == DW_OP_call_frame_cfa) return cfa();
  const auto top = cfa();
  if (op->atom == DW_OP_reg6) {
    const auto rbp = state_.reg(FrameState::kRbp);
    const bool is_set = rbp.all() && top && rbp.value + kFramePointerToCfa == *top;
    return is_set ? std::optional{rbp.value} : std::nullopt;
  }
  const auto rsp = state_.reg(FrameState::kRsp);
  if (op->atom != DW_OP_reg7 || !rsp.all() || !after_prologue_) return std::nullopt;
  const auto usual = place_.rules_at ? place_.rules_at(*after_prologue_).distance_from_sp()
                                     : std::optional<std::uint64_t>{};
  return usual && usual == place_.rules.distance_from_sp() ? std::optional{rsp.value}
                                                           : std::nullopt;
}

std::optional<FunctionFrame::Found> FunctionFrame::find_location(Dwarf_Die* die) const {
  Found out;
  if (dwarf_attr_integrate(die, DW_AT_location, &out.attribute) == nullptr) return std::nullopt;
  std::array<Dwarf_Op*, 2> ops{};
  std::array<std::size_t, 2> counts{};
  // Two places at once: which one is right is not known.
  if (dwarf_getlocation_addr(&out.attribute, place_.address, ops.data(), counts.data(),
                             ops.size()) != 1) {
    return std::nullopt;
  }
  if (counts[0] == 0) return std::nullopt;
  out.ops = {ops[0], counts[0]};
  out.is_list = !is_expression(&out.attribute);
  return out;
}

/// Returns true for a variable that is in the same place all the time, as global ones are.
bool FunctionFrame::is_fixed(const Found& found) {
  const unsigned first = found.ops.front().atom;
  return found.ops.size() == 1 &&
         (first == DW_OP_addr || first == DW_OP_addrx || first == DW_OP_GNU_addr_index);
}

/// Returns true if the variable may not be in its place yet, or no longer.
bool FunctionFrame::is_doubtful(const Location& location, bool is_list) {
  const auto top = cfa();
  const auto sp = state_.reg(FrameState::kRsp);
  const bool in_prologue = !first_ || !after_prologue_ ||
                           (place_.address >= *first_ && place_.address < *after_prologue_);
  return std::ranges::any_of(location, [&](const LocationPiece& piece) {
    if (piece.kind == LocationPiece::Kind::kRegister) {
      return !is_list && (moves_variables_ || (in_prologue && !passes_arguments(piece.value)));
    }
    if (piece.kind != LocationPiece::Kind::kMemory) return false;
    if (!top || !sp.all()) return true;
    constexpr std::uint64_t kFarBelow = 1U << 20U;
    const std::uint64_t end_of_stack = sp.value - kRedZone;
    if (piece.value < end_of_stack && piece.value >= end_of_stack - kFarBelow) return true;
    if (is_list) return false;
    // Compilers leave out stores that nothing reads, and delay others.
    if (optimised_) return true;
    const bool in_frame = piece.value >= end_of_stack && piece.value < *top;
    return in_frame && (in_prologue || moves_variables_);
  });
}

std::optional<std::string> FunctionFrame::text_of(const Dwarf_Die& type,
                                                  const ObjectBytes& object) {
  return value_text(type, object, {state_, work_, !optimised_});
}

std::optional<std::string> FunctionFrame::constant_of(Dwarf_Attribute* attribute,
                                                      const Dwarf_Die& type) {
  LocationPiece piece{.kind = LocationPiece::Kind::kValue, .bytes = {}};
  Dwarf_Block block{};
  Dwarf_Sword number = 0;
  Dwarf_Word word = 0;
  const unsigned form = dwarf_whatform(attribute);
  if (form == DW_FORM_sdata || form == DW_FORM_implicit_const) {
    if (dwarf_formsdata(attribute, &number) != 0) return std::nullopt;
    piece.value = static_cast<std::uint64_t>(number);
  } else if (form == DW_FORM_string || form == DW_FORM_strp || form == DW_FORM_line_strp) {
    return std::nullopt;
  } else if (is_expression(attribute)) {
    if (dwarf_formblock(attribute, &block) != 0) return std::nullopt;
    piece.kind = LocationPiece::Kind::kBytes;
    const std::size_t size = std::min<std::size_t>(block.length, kMostObjectBytes);
    piece.bytes.assign(block.data, block.data + size);
  } else {
    // data1 to data8 do not tell how they are extended; only as many bytes are taken.
    if (dwarf_formudata(attribute, &word) != 0) return std::nullopt;
    const auto size = type_size(type, work_);
    const std::uint64_t bytes = form == DW_FORM_data1   ? 1
                                : form == DW_FORM_data2 ? 2
                                : form == DW_FORM_data4 ? 4
                                                        : 8;
    if (!size || *size > bytes) {
      // Small numbers that are the same either way.
      const bool is_positive = word >> (8 * bytes - 1) == 0;
      if (!size || !is_positive) return std::nullopt;
    }
    piece.value = word;
  }
  const auto size = type_size(type, work_);
  if (!size) return std::nullopt;
  return text_of(type, read_object({piece}, static_cast<std::size_t>(*size), state_));
}

std::optional<std::string> FunctionFrame::value_of(Dwarf_Die* die, const Dwarf_Die& type) {
  Dwarf_Attribute attribute;
  if (dwarf_attr_integrate(die, DW_AT_const_value, &attribute) != nullptr) {
    return constant_of(&attribute, type);
  }
  auto found = find_location(die);
  if (!found) return std::nullopt;
  const Location location = evaluate_location(found->ops, &found->attribute, context());
  if (location.empty() || is_doubtful(location, found->is_list)) return std::nullopt;
  const auto size = type_size(type, work_);
  if (!size) return std::nullopt;
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(*size, kMostObjectBytes));
  return text_of(type, read_object(location, most, state_));
}

Variable FunctionFrame::read(Dwarf_Die die) {
  Variable out;
  out.name = die_name(&die);
  const auto type = type_of(&die);
  if (!type) return out;
  out.type = type_name(*type);
  out.value = value_of(&die, *type);
  return out;
}

void FunctionFrame::add_scope(Dwarf_Die scope, FrameVariables& out) {
  std::vector<Dwarf_Die> parameters;
  std::vector<Dwarf_Die> variables;
  for_each_child(scope, work_, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if (tag != DW_TAG_formal_parameter && tag != DW_TAG_variable) return true;
    if (is_declaration(&child)) return true;
    // The compiler's own variables are of no interest.
    if (has_flag(&child, DW_AT_artificial) && die_name(&child) != "this") return true;
    auto& list = tag == DW_TAG_formal_parameter ? parameters : variables;
    if (list.size() < kMostVariables) list.push_back(child);
    return true;
  });
  // The parameters of an inlined function come in any order, those of its origin in the right one.
  std::ranges::stable_sort(parameters, {}, [](Dwarf_Die die) { return origin_of(&die); });
  for (const Dwarf_Die& die : parameters) out.arguments.push_back(read(die));
  std::vector<Variable> locals;
  locals.reserve(variables.size());
  for (const Dwarf_Die& die : variables) locals.push_back(read(die));
  out.locals.insert(out.locals.begin(), std::make_move_iterator(locals.begin()),
                    std::make_move_iterator(locals.end()));
  if (out.locals.size() > kMostVariables) out.locals.resize(kMostVariables);
}

std::vector<Variable> FunctionFrame::parameters() {
  FrameVariables out;
  if (!place_.scopes.empty()) add_scope(place_.scopes.front(), out);
  return std::move(out.arguments);
}

std::vector<FrameVariables> FunctionFrame::variables() {
  std::vector<FrameVariables> out;
  for (Dwarf_Die scope : place_.scopes) {
    const int tag = dwarf_tag(&scope);
    if (out.empty() || tag == DW_TAG_inlined_subroutine) out.emplace_back();
    add_scope(scope, out.back());
  }
  std::reverse(out.begin(), out.end());
  return out;
}

/// Returns the variable of a scope.
std::optional<Dwarf_Die> FunctionFrame::find_in(Dwarf_Die scope, const std::string& name) {
  std::optional<Dwarf_Die> found;
  for_each_child(scope, work_, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    const bool is_variable = tag == DW_TAG_formal_parameter || tag == DW_TAG_variable;
    if (is_variable && die_name(&child) == name && !is_declaration(&child)) found = child;
    return !found;
  });
  return found;
}

PlacedVariable FunctionFrame::place_of(Dwarf_Die die) {
  PlacedVariable out;
  out.variable = read(die);
  if (const auto type = type_of(&die)) out.bytes = type_size(*type, work_).value_or(0);
  auto found = find_location(&die);
  if (!found) return out;
  const Location location = evaluate_location(found->ops, &found->attribute, context());
  if (location.size() != 1) return out;
  if (!is_fixed(*found) && is_doubtful(location, found->is_list)) return out;
  const LocationPiece& piece = location.front();
  if (piece.kind == LocationPiece::Kind::kMemory) out.address = piece.value;
  if (piece.kind == LocationPiece::Kind::kRegister && piece.value < FrameState::kPc) {
    out.reg = static_cast<unsigned>(piece.value);
  }
  return out;
}

std::optional<PlacedVariable> FunctionFrame::find(const std::string& name) {
  for (auto scope = place_.scopes.rbegin(); scope != place_.scopes.rend(); ++scope) {
    if (const auto die = find_in(*scope, name)) return place_of(*die);
  }
  return std::nullopt;
}

PlacedVariable FunctionFrame::global(const GlobalVariable& variable) {
  PlacedVariable out;
  out.variable.name = variable.name;
  out.file = variable.file;
  Dwarf_Die die = variable.die;
  const auto type = type_of(&die);
  if (!type) return out;
  out.variable.type = type_name(*type);
  const auto size = type_size(*type, work_);
  auto found = find_location(&die);
  if (!size || !found || !is_fixed(*found)) return out;
  const Location location = evaluate_location(found->ops, &found->attribute, context());
  if (location.size() != 1 || location.front().kind != LocationPiece::Kind::kMemory) return out;
  out.bytes = *size;
  out.address = location.front().value;
  const auto most = static_cast<std::size_t>(std::min<std::uint64_t>(*size, kMostObjectBytes));
  out.variable.value = text_of(*type, read_object(location, most, state_));
  return out;
}

}  // namespace backtrail::decoder
