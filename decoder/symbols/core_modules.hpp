// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Finds the modules of a process in its core.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

/// Returns the local path of a file of the process; nullopt if it is not here.
using FindFile = std::function<std::optional<std::string>(const std::string& path)>;

[[nodiscard]] std::vector<LoadedModule> core_modules(const CoreFile& core, const FindFile& find);

}  // namespace backtrail::decoder
