// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/returned_value.hpp"

#include <string_view>

#include <dwarf.h>

#include "decoder/variables/type_facts.hpp"
#include "decoder/variables/value_text.hpp"

namespace backtrail::decoder {
namespace {

/// Returns the register that returns a value of the type; nullopt if there is no single one.
std::optional<unsigned> register_of(Dwarf_Die type, WorkLimit& work) {
  const auto size = type_size(type, work);
  if (!size || *size > sizeof(std::uint64_t)) return std::nullopt;
  switch (dwarf_tag(&type)) {
    case DW_TAG_enumeration_type:
    case DW_TAG_pointer_type:
    case DW_TAG_reference_type:
    case DW_TAG_rvalue_reference_type:
      return FrameState::kRax;
    case DW_TAG_base_type:
      break;
    default:
      return std::nullopt;
  }
  switch (constant_attribute(&type, DW_AT_encoding).value_or(0)) {
    case DW_ATE_float:
      return FrameState::kFirstVector;
    case DW_ATE_boolean:
    case DW_ATE_signed:
    case DW_ATE_signed_char:
    case DW_ATE_unsigned:
    case DW_ATE_unsigned_char:
    case DW_ATE_UTF:
      return FrameState::kRax;
    default:
      return std::nullopt;
  }
}

/// Returns true if the function returns its result as the ABI says: the code is not optimised, or
/// callers that the compiler does not see rely on it.
bool follows_abi(const FunctionPlace& place, bool is_optimised) {
  Dwarf_Die function = place.scopes.front();
  Dwarf_Die unit = place.unit;
  constexpr std::uint64_t kNormal = DW_CC_normal;
  if (constant_attribute(&function, DW_AT_calling_convention).value_or(kNormal) != kNormal) {
    return false;
  }
  if (!is_optimised) return true;
  // Optimisers drop results that no caller in sight uses. A changed copy of a function has an
  // abstract origin, as some others have.
  Dwarf_Attribute attribute;
  const char* text = nullptr;
  if (dwarf_attr(&function, DW_AT_external, &attribute) == nullptr ||
      dwarf_attr(&function, DW_AT_abstract_origin, &attribute) != nullptr) {
    return false;
  }
  if (dwarf_attr(&unit, DW_AT_producer, &attribute) != nullptr) text = dwarf_formstring(&attribute);
  const std::string_view producer = text == nullptr ? "" : text;
  const auto has = [&](const char* option) {
    return producer.find(option) != std::string_view::npos;
  };
  return producer.starts_with("GNU ") && !has("-flto") && !has("-fwhole-program");
}

}  // namespace

std::optional<Variable> returned_value(const FunctionPlace& place, FrameState& state,
                                       WorkLimit& work) {
  Dwarf_Die function = place.scopes.front();
  const auto type = type_of(&function);
  const auto plain = type ? plain_type(*type) : std::nullopt;
  if (!plain || has_flag(&function, DW_AT_noreturn)) return std::nullopt;
  const auto number = register_of(*plain, work);
  if (!number) return std::nullopt;
  Variable out;
  out.type = type_name(*type);
  const FunctionFrame frame{place, state, work};
  if (!follows_abi(place, frame.is_optimised())) return out;
  const auto size = type_size(*plain, work);
  const ObjectBytes object =
      read_object({{.kind = LocationPiece::Kind::kRegister, .value = *number, .bytes = {}}},
                  static_cast<std::size_t>(size.value_or(0)), state);
  out.value = value_text(*type, object, {state, work, false});
  return out;
}

}  // namespace backtrail::decoder
