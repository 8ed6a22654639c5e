#pragma once
/// @file
/// `backtrail report`: what a crash file tells.

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
  std::string output;              ///< Empty: standard output.
  std::vector<std::string> roots;  ///< Folders in which the program's files are looked for first.
  ReportForm form = ReportForm::kText;
  std::uint64_t calls = 0;     ///< Shown of each thread; 0: as is usual.
  bool all_threads = false;    ///< Each of them in full, however many.
  std::uint64_t branches = 0;  ///< Looked at of each thread; 0: as many as are needed.
};

/// @return The exit status: 0; 1 when the file cannot be read or the report not be written.
[[nodiscard]] int run_report(const ReportCommand& command);

}  // namespace backtrail::server
