// SPDX-License-Identifier: Apache-2.0
// Command line of `backtrail report`.

#include <map>

#include <CLI/CLI.hpp>

#include "server/cli/cli_words.hpp"
#include "server/cli/command_line.hpp"

namespace backtrail::server {

Command parse_report_arguments(std::span<const std::string> arguments) {
  ReportCommand command;
  CLI::App app{"Report the last calls before a crash", "backtrail report"};
  app.add_option("FILE", command.file, "The crash file, or an archive made by pack")->required();
  app.add_option("-o,--output", command.output, "Write to this file, not to standard output")
      ->type_name("FILE");
  add_roots_option(app, command.roots);
  app.add_option("--calls", command.calls,
                 "Calls to show of each thread (default: 50 of the one that died, 10 of others)")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  app.add_option("--branches", command.branches,
                 "Branches to read of each thread, newest first (default: as needed)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  app.add_flag("--values", command.values,
               "Show arguments and variables of the thread that died, where they can be known; the "
               "page shows them at each step");
  app.add_flag("--all-threads", command.all_threads,
               "Show each thread in full (default: of more than 8 threads, those in the same calls "
               "are shown once)");
  auto* form = app.add_option_group("Form", "Text unless one of these is given");
  const std::map<std::string, std::pair<ReportForm, std::string>> forms{
      {"--markdown", {ReportForm::kMarkdown, "For the page of a CI job, at most 512 KiB"}},
      {"--json", {ReportForm::kJson, "For programs; docs/report-format.md"}},
      {"--summary", {ReportForm::kSummary, "One screen: how it ended, where, the last 20 calls"}},
      {"--signature", {ReportForm::kSignature, "One line that is equal for duplicates"}},
      {"--html", {ReportForm::kHtml, "An interactive page for a browser"}},
      {"--folded", {ReportForm::kFolded, "Stacks for flame graphs"}},
      {"--speedscope", {ReportForm::kSpeedscope, "For speedscope"}},
      {"--perfetto", {ReportForm::kPerfetto, "For Perfetto: Chrome's trace events"}}};
  for (const auto& [name, what] : forms) {
    const ReportForm chosen = what.first;
    form->add_flag_callback(
        name, [&command, chosen] { command.form = chosen; }, what.second);
  }
  form->require_option(0, 1);
  if (auto exit = parse_words(app, arguments)) return *exit;
  return command;
}

}  // namespace backtrail::server
