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
    std::string command = app.get_name();
    for (const CLI::App* sub : app.get_subcommands()) command += " " + sub->get_name();
    return PrintAndExit{
        1, fmt::format("backtrail: {}\n'{} --help' lists the options.\n", error.what(), command)};
  }
  return std::nullopt;
}

PrintAndExit wrong_words(std::string_view command, const std::string& text) {
  return {1,
          fmt::format("backtrail: {}\n'backtrail {} --help' lists the options.\n", text, command)};
}

int fail_with(const std::string& text) {
  fmt::print(stderr, "backtrail: {}\n", text);
  return 1;
}

std::string wrong_log_levels(std::string_view levels) {
  return fmt::format(
      "'{}' is not a log setting: write LEVEL or MODULE:LEVEL,..., with the modules arch decoder "
      "ptrace server rsp and the levels error warn info debug trace off",
      levels);
}

void add_values_option(CLI::App& app, std::string& depth) {
  app.add_option("--values", depth,
                 "How much of the program's values to record besides branches, so that the past "
                 "shows more: free (nothing, default), most (addresses of stores, and system "
                 "calls; takes longer) or all (what stores overwrite, too; takes longer still)")
      ->check(CLI::IsMember({"free", "most", "all"}))
      ->type_name("DEPTH");
}

tracee::ValueDepth value_depth_from(std::string_view word) {
  if (word == "all") return tracee::ValueDepth::kAll;
  return word == "most" ? tracee::ValueDepth::kMost : tracee::ValueDepth::kFree;
}

void add_roots_option(CLI::App& app, std::vector<std::string>& roots) {
  app.add_option("--files", roots, "Look for the program's files below this folder first")
      ->type_name("FOLDER")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

}  // namespace backtrail::server
