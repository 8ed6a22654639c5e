#pragma once
/// @file
/// A program that died, from its core file, as something to debug.

#include <memory>
#include <string>
#include <vector>

#include "arch/base/result.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Everything of `path` can be read, nothing written; resuming says that the program is dead.
/// @param roots  Folders below which its files are looked for first.
/// Errors: of opening; kMalformed.
Result<std::unique_ptr<Target>> make_core_target(const std::string& path,
                                                 std::vector<std::string> roots);

}  // namespace backtrail::server
