// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A program that died, from its core file, as something to debug.

#include <memory>
#include <string>
#include <vector>

#include "server/target/open_core.hpp"
#include "server/target/target.hpp"

namespace backtrail::server {

/// Everything can be read, nothing written (EROFS); resuming says that the program is dead.
/// @param roots  Folders below which its files are looked for first.
std::unique_ptr<Target> make_core_target(OpenCore core, std::vector<std::string> roots);

}  // namespace backtrail::server
