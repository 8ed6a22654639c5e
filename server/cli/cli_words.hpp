// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Common parts of the subcommands' parsers.

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

/// Returns nullopt if the app has taken the words; else the help asked for, or the error.
[[nodiscard]] std::optional<PrintAndExit> parse_words(CLI::App& app,
                                                      std::span<const std::string> words);

/// Returns the exit for an error that CLI11 cannot detect.
[[nodiscard]] PrintAndExit wrong_words(std::string_view command, const std::string& text);

/// Prints "backtrail: TEXT" on stderr. Returns the exit status of a command that failed.
int fail_with(const std::string& text);

/// Returns the error for words that log::configure does not take.
[[nodiscard]] std::string wrong_log_levels(std::string_view levels);

/// Adds the option --values, a DEPTH: "free", "most" or "all".
void add_values_option(CLI::App& app, std::string& depth);
[[nodiscard]] tracee::ValueDepth value_depth_from(std::string_view word);

/// Adds the option --files.
void add_roots_option(CLI::App& app, std::vector<std::string>& roots);

}  // namespace backtrail::server
