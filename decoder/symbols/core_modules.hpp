#pragma once
/// @file
/// The modules of a process, from its core.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "decoder/corefile/core_file.hpp"
#include "decoder/symbols/symbols.hpp"

namespace backtrail::decoder {

/// Says where a file of the process lies here; nothing: nowhere.
using FindFile = std::function<std::optional<std::string>(const std::string& path)>;

[[nodiscard]] std::vector<LoadedModule> core_modules(const CoreFile& core, const FindFile& find);

}  // namespace backtrail::decoder
