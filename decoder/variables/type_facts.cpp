// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/type_facts.hpp"

#include <dwarf.h>
#include <fmt/format.h>

namespace backtrail::decoder {
namespace {

constexpr int kMostNesting = 32;
constexpr std::size_t kMostDimensions = 8;
/// Longest type name, in bytes.
constexpr std::size_t kLongestName = 200;

bool is_qualifier(int tag) {
  return tag == DW_TAG_typedef || tag == DW_TAG_const_type || tag == DW_TAG_volatile_type ||
         tag == DW_TAG_restrict_type || tag == DW_TAG_atomic_type;
}

std::string name_of(std::optional<Dwarf_Die> type, int nesting);

std::string name_of_target(Dwarf_Die* type, const char* mark, int nesting) {
  const std::string target = name_of(type_of(type), nesting + 1);
  const bool spaced = !target.empty() && target.back() != '*' && target.back() != '&';
  return target + (spaced ? " " : "") + mark;
}

std::string name_of_qualified(Dwarf_Die* type, const char* word, int nesting) {
  const std::string target = name_of(type_of(type), nesting + 1);
  return target.ends_with('*') ? target + word : std::string{word} + " " + target;
}

std::string name_of_array(Dwarf_Die* type, int nesting) {
  std::string out = name_of(type_of(type), nesting + 1) + " ";
  WorkLimit work{kMostNesting};
  const auto counts = array_counts(*type, work);
  if (counts.empty()) return out + "[]";
  for (const std::uint64_t count : counts) out += fmt::format("[{}]", count);
  return out;
}

std::string name_of(std::optional<Dwarf_Die> type, int nesting) {
  if (!type) return "void";
  if (nesting > kMostNesting) return "...";
  switch (dwarf_tag(&*type)) {
    case DW_TAG_pointer_type:
      return name_of_target(&*type, "*", nesting);
    case DW_TAG_reference_type:
      return name_of_target(&*type, "&", nesting);
    case DW_TAG_rvalue_reference_type:
      return name_of_target(&*type, "&&", nesting);
    case DW_TAG_const_type:
      return name_of_qualified(&*type, "const", nesting);
    case DW_TAG_volatile_type:
      return name_of_qualified(&*type, "volatile", nesting);
    case DW_TAG_restrict_type:
    case DW_TAG_atomic_type:
      return name_of(type_of(&*type), nesting + 1);
    case DW_TAG_array_type:
      return name_of_array(&*type, nesting);
    case DW_TAG_subroutine_type:
      return name_of(type_of(&*type), nesting + 1) + " (...)";
    default: {
      const std::string name = die_name(&*type);
      return name.empty() ? "..." : name;
    }
  }
}

/// Returns the number of elements of one dimension.
std::optional<std::uint64_t> count_of(Dwarf_Die* range) {
  if (const auto count = constant_attribute(range, DW_AT_count)) return count;
  const auto upper = constant_attribute(range, DW_AT_upper_bound);
  const std::uint64_t lower = constant_attribute(range, DW_AT_lower_bound).value_or(0);
  // An array without elements has -1, in the width that the compiler liked.
  if (!upper || *upper < lower || *upper >= UINT32_MAX) return std::nullopt;
  return *upper - lower + 1;
}

std::string shortened(std::string name) {
  if (name.size() <= kLongestName) return name;
  name.resize(kLongestName);
  name += "...";
  return name;
}

}  // namespace

std::optional<std::uint64_t> constant_attribute(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  Dwarf_Word value = 0;
  if (dwarf_attr_integrate(die, name, &attribute) == nullptr) return std::nullopt;
  switch (dwarf_whatform(&attribute)) {
    case DW_FORM_data1:
    case DW_FORM_data2:
    case DW_FORM_data4:
    case DW_FORM_data8:
    case DW_FORM_udata:
    case DW_FORM_sdata:
    case DW_FORM_implicit_const:
      break;
    default:
      return std::nullopt;  // An expression, or a reference to a variable.
  }
  if (dwarf_formudata(&attribute, &value) != 0) return std::nullopt;
  return value;
}

bool has_flag(Dwarf_Die* die, unsigned name) {
  Dwarf_Attribute attribute;
  bool value = false;
  return dwarf_attr_integrate(die, name, &attribute) != nullptr &&
         dwarf_formflag(&attribute, &value) == 0 && value;
}

bool is_declaration(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  bool value = false;
  return dwarf_attr(die, DW_AT_declaration, &attribute) != nullptr &&
         dwarf_formflag(&attribute, &value) == 0 && value;
}

std::string die_name(Dwarf_Die* die) {
  const char* name = dwarf_diename(die);
  if (name == nullptr) return {};
  return shortened(name);
}

std::optional<Dwarf_Die> type_of(Dwarf_Die* die) {
  Dwarf_Attribute attribute;
  Dwarf_Die type{};
  if (dwarf_attr_integrate(die, DW_AT_type, &attribute) == nullptr) return std::nullopt;
  if (dwarf_formref_die(&attribute, &type) == nullptr) return std::nullopt;
  // A type in a unit of its own is declared here and defined there.
  Dwarf_Die defined{};
  if (dwarf_attr(&type, DW_AT_signature, &attribute) != nullptr &&
      dwarf_formref_die(&attribute, &defined) != nullptr) {
    return defined;
  }
  return type;
}

std::optional<Dwarf_Die> plain_type(Dwarf_Die type) {
  for (int i = 0; i < kMostNesting; ++i) {
    if (!is_qualifier(dwarf_tag(&type))) return type;
    const auto next = type_of(&type);
    if (!next) return std::nullopt;
    type = *next;
  }
  return std::nullopt;
}

std::vector<std::uint64_t> array_counts(Dwarf_Die array, WorkLimit& work) {
  std::vector<std::uint64_t> out;
  bool is_constant = true;
  for_each_child(array, work, [&](Dwarf_Die child) {
    if (dwarf_tag(&child) != DW_TAG_subrange_type) return true;
    const auto count = count_of(&child);
    is_constant = is_constant && count && out.size() < kMostDimensions;
    if (is_constant) out.push_back(*count);
    return is_constant;
  });
  if (!is_constant) out.clear();
  return out;
}

std::optional<std::uint64_t> type_size(const Dwarf_Die& type, WorkLimit& work) {
  std::uint64_t factor = 1;
  auto plain = plain_type(type);
  for (int i = 0; plain && i < kMostNesting; ++i) {
    const auto size = constant_attribute(&*plain, DW_AT_byte_size);
    std::uint64_t out = 0;
    if (size)
      return __builtin_mul_overflow(*size, factor, &out) ? std::nullopt : std::optional{out};
    const int tag = dwarf_tag(&*plain);
    if (tag == DW_TAG_pointer_type || tag == DW_TAG_reference_type ||
        tag == DW_TAG_rvalue_reference_type) {
      return factor * sizeof(std::uint64_t);
    }
    if (tag != DW_TAG_array_type) return std::nullopt;
    const auto counts = array_counts(*plain, work);
    if (counts.empty()) return std::nullopt;
    for (const std::uint64_t count : counts) {
      if (__builtin_mul_overflow(factor, count, &factor)) return std::nullopt;
    }
    const auto element = type_of(&*plain);
    plain = element ? plain_type(*element) : std::nullopt;
  }
  return std::nullopt;
}

std::string type_name(const Dwarf_Die& type) {
  return shortened(name_of(type, 0));
}

}  // namespace backtrail::decoder
