// SPDX-License-Identifier: Apache-2.0
#include "server/cli/cli_words.hpp"

#include <sstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

namespace backtrail::server {

std::optional<PrintAndExit> parse_words(CLI::App& app, std::span<const std::string> words) {
  try {
    // CLI11 takes the words in reverse order.
    app.parse(std::vector<std::string>{words.rbegin(), words.rend()});
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    if (app.exit(error, out, err) == 0) return PrintAndExit{0, out.str()};
    return PrintAndExit{1, fmt::format("backtrail: {}\n'{} --help' lists the options.\n",
                                       error.what(), app.get_name())};
  }
  return std::nullopt;
}

PrintAndExit wrong_words(std::string_view command, const std::string& text) {
  return {1,
          fmt::format("backtrail: {}\n'backtrail {} --help' lists the options.\n", text, command)};
}

void add_roots_option(CLI::App& app, std::vector<std::string>& roots) {
  app.add_option("--files", roots, "Look for the program's files below this folder first")
      ->type_name("FOLDER")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace backtrail::server
