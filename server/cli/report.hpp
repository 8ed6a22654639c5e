// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// `backtrail report`: prints the contents of a crash file.

#include <cstdint>
#include <string>
#include <vector>

namespace backtrail::server {

enum class ReportForm : std::uint8_t {
  kText,
  kMarkdown,
  kJson,
  kHtml,
  kFolded,
  kSpeedscope,
  kPerfetto,
  kSummary,
  kSignature,
};

struct ReportCommand {
  std::string file;
  std::string output;              ///< Path of the output; empty = standard output.
  std::vector<std::string> roots;  ///< Folders searched first for the program's files.
  ReportForm form = ReportForm::kText;
  std::uint64_t calls = 0;     ///< Calls to show of each thread; 0 = the usual number.
  bool values = false;         ///< Show the values of variables.
  bool all_threads = false;    ///< Show every thread in full.
  std::uint64_t branches = 0;  ///< Branches to read of each thread; 0 = as many as needed.
};

/// @return The exit status: 0; 1 if the file cannot be read or the report cannot be written.
[[nodiscard]] int run_report(const ReportCommand& command);

}  // namespace backtrail::server
