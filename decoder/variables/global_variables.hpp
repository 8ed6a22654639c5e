// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds global variables by their names.

#include <string>
#include <vector>

#include <elfutils/libdw.h>

#include "decoder/variables/work_limit.hpp"

namespace backtrail::decoder {

/// The definition of a global variable, or of a static one outside of functions.
struct GlobalVariable {
  Dwarf_Die die{};
  std::string name;        ///< With its namespaces and classes, as "space::Class::name".
  std::string file;        ///< Name of its source file without folders; empty if unknown.
  bool has_place = false;  ///< False if debug information does not tell where it is.
};

/// Returns the variables of a unit that a name means. It may begin with namespaces and classes, or
/// with the file and these ("file.cpp::space::name"); what it leaves out in front may be anything.
/// Declarations of variables that are defined elsewhere are left out.
[[nodiscard]] std::vector<GlobalVariable> find_globals(Dwarf_Die unit, const std::string& name,
                                                       WorkLimit& work);

}  // namespace backtrail::decoder
