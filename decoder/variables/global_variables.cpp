// SPDX-License-Identifier: Apache-2.0
#include "decoder/variables/global_variables.hpp"

#include <memory>
#include <optional>
#include <string_view>

#include <dwarf.h>

#include "decoder/variables/type_facts.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::string_view kBetween = "::";

bool ends_with_part(std::string_view whole, std::string_view part) {
  if (whole == part) return true;
  return whole.ends_with(part) && whole.substr(0, whole.size() - part.size()).ends_with(kBetween);
}

/// Returns the entry that a definition completes: a declaration in a class or namespace, or, after
/// link-time optimisation, the entry of the source file.
Dwarf_Die described_by(Dwarf_Die die) {
  constexpr unsigned kMostSteps = 4;
  for (unsigned i = 0; i < kMostSteps; ++i) {
    Dwarf_Attribute attribute;
    Dwarf_Die next{};
    const bool refers = dwarf_attr(&die, DW_AT_specification, &attribute) != nullptr ||
                        dwarf_attr(&die, DW_AT_abstract_origin, &attribute) != nullptr;
    if (!refers || dwarf_formref_die(&attribute, &next) == nullptr) break;
    die = next;
  }
  return die;
}

/// Returns the names of the namespaces and classes around an entry, and its own.
std::string qualified_name(Dwarf_Die die) {
  std::string out = die_name(&die);
  Dwarf_Die* scopes = nullptr;
  const int count = dwarf_getscopes_die(&die, &scopes);
  const std::unique_ptr<Dwarf_Die, decltype(&std::free)> owner{scopes, &std::free};
  for (int i = 1; i < count; ++i) {
    Dwarf_Die& scope = scopes[i];
    const int tag = dwarf_tag(&scope);
    const bool has_names = tag == DW_TAG_namespace || tag == DW_TAG_structure_type ||
                           tag == DW_TAG_class_type || tag == DW_TAG_union_type ||
                           tag == DW_TAG_module;
    const std::string name = has_names ? die_name(&scope) : std::string{};
    if (!name.empty()) out.insert(0, name + std::string{kBetween});
  }
  return out;
}

std::string file_of(Dwarf_Die die) {
  Dwarf_Die unit{};
  if (dwarf_diecu(&die, &unit, nullptr, nullptr) == nullptr) return {};
  const std::string path = die_name(&unit);
  return path.substr(path.rfind('/') + 1);
}

bool has_place(Dwarf_Die* die) {
  return dwarf_hasattr_integrate(die, DW_AT_location) != 0;
}

void find_in(Dwarf_Die scope, const std::string& name, unsigned depth, WorkLimit& work,
             std::vector<GlobalVariable>& out) {
  constexpr std::size_t kMostFound = 16;
  constexpr unsigned kMostDepth = 16;
  for_each_child(scope, work, [&](Dwarf_Die child) {
    const int tag = dwarf_tag(&child);
    if ((tag == DW_TAG_namespace || tag == DW_TAG_module) && depth < kMostDepth) {
      find_in(child, name, depth + 1, work, out);
    }
    if (tag != DW_TAG_variable || is_declaration(&child)) return true;
    const std::string own = die_name(&child);
    if (own.empty() || !ends_with_part(name, own)) return true;
    const Dwarf_Die described = described_by(child);
    GlobalVariable found{child, qualified_name(described), file_of(described), has_place(&child)};
    if (ends_with_part(found.file + std::string{kBetween} + found.name, name)) {
      out.push_back(std::move(found));
    }
    return out.size() < kMostFound;
  });
}

}  // namespace

std::vector<GlobalVariable> find_globals(Dwarf_Die unit, const std::string& name, WorkLimit& work) {
  std::vector<GlobalVariable> out;
  find_in(unit, name, 0, work, out);
  return out;
}

}  // namespace backtrail::decoder
