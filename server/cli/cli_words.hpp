#pragma once
/// @file
/// What the parsers of all subcommands do alike.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server/cli/command_line.hpp"

namespace CLI {  // NOLINT(readability-identifier-naming): not ours
class App;
}

namespace backtrail::server {

/// nullopt: the app has taken the words. Else it asked for help, or they are wrong.
[[nodiscard]] std::optional<PrintAndExit> parse_words(CLI::App& app,
                                                      std::span<const std::string> words);

/// What is wrong in a way that CLI11 knows nothing of.
[[nodiscard]] PrintAndExit wrong_words(std::string_view command, const std::string& text);

/// --files.
void add_roots_option(CLI::App& app, std::vector<std::string>& roots);

}  // namespace backtrail::server
