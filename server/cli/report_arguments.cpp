// `backtrail report`: what comes after it.

#include <map>
#include <sstream>

#include <CLI/CLI.hpp>

#include "server/cli/command_line.hpp"

namespace backtrail::server {

Command parse_report_arguments(std::span<const std::string> arguments) {
  ReportCommand command;
  CLI::App app{"Say what a crash file tells", "backtrail report"};
  app.add_option("FILE", command.file, "The crash file, or an archive of `pack`")->required();
  app.add_option("-o,--output", command.output, "Write to this file, not to standard output")
      ->type_name("FILE");
  app.add_option("--files", command.roots, "Look for the program's files below this folder first")
      ->type_name("FOLDER")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--calls", command.calls,
                 "Calls shown of each thread (default: 50 of the one that died, 10 of others)")
      ->check(CLI::Range(1, 1000000))
      ->type_name("N");
  app.add_option("--branches", command.branches,
                 "Branches of each thread that are looked at, newest first (default: as needed)")
      ->check(CLI::PositiveNumber)
      ->type_name("N");
  auto* form = app.add_option_group("Form", "Text unless one of these is given");
  const std::map<std::string, std::pair<ReportForm, std::string>> forms{
      {"--markdown", {ReportForm::kMarkdown, "For the page of a CI job, below 1 MiB"}},
      {"--json", {ReportForm::kJson, "For programs; docs/report-format.md"}},
      {"--html", {ReportForm::kHtml, "One page to look around in, for a browser"}},
      {"--folded", {ReportForm::kFolded, "Stacks for flame graphs"}},
      {"--speedscope", {ReportForm::kSpeedscope, "For speedscope"}},
      {"--perfetto", {ReportForm::kPerfetto, "For Perfetto: Chrome's trace events"}}};
  for (const auto& [name, what] : forms) {
    const ReportForm chosen = what.first;
    form->add_flag_callback(
        name, [&command, chosen] { command.form = chosen; }, what.second);
  }
  form->require_option(0, 1);
  try {
    // CLI11 takes the words from the back.
    app.parse(std::vector<std::string>{arguments.rbegin(), arguments.rend()});
  } catch (const CLI::ParseError& error) {
    std::ostringstream out;
    std::ostringstream err;
    const int status = app.exit(error, out, err) == 0 ? 0 : 1;
    return PrintAndExit{status, status == 0 ? out.str() : err.str()};
  }
  return command;
}

}  // namespace backtrail::server
