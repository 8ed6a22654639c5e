// SPDX-License-Identifier: Apache-2.0
#include "server/cli/report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "decoder/export/exports.hpp"
#include "decoder/export/html_page.hpp"
#include "decoder/report/report_builder.hpp"
#include "decoder/report/report_text.hpp"
#include "decoder/symbols/core_modules.hpp"
#include "ptrace/core/program_memory.hpp"
#include "server/cli/cli_words.hpp"
#include "server/crash/crash_source.hpp"
#include "server/crash/crash_values.hpp"

namespace backtrail::server {
namespace {

/// Calls that fit on a screen.
constexpr std::size_t kSummaryCalls = 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

/// Writes to standard output or a file. Remembers the first error.
class Output {
 public:
  explicit Output(const std::string& path) {
    if (path.empty()) return;
    opened_.reset(std::fopen(path.c_str(), "wb"));
    file_ = opened_.get();
    if (file_ == nullptr) error_ = errno;
  }
  void put(std::string_view text) {
    if (error_ != 0) return;
    if (std::fwrite(text.data(), 1, text.size(), file_) != text.size()) error_ = errno;
  }
  /// Returns 0 if everything was written, else the errno.
  [[nodiscard]] int finish() {
    if (error_ == 0 && std::fflush(file_) != 0) error_ = errno;
    return error_;
  }
  [[nodiscard]] bool failed() const { return error_ != 0; }

 private:
  std::unique_ptr<std::FILE, CloseFile> opened_;
  std::FILE* file_ = stdout;
  int error_ = 0;
};

/// Returns how many branches of each thread are exported by default: as many as viewers can handle.
std::uint64_t usual_branches(ReportForm form) {
  switch (form) {
    case ReportForm::kFolded:
      return ~std::uint64_t{0};  // their memory does not grow with the trace
    case ReportForm::kSpeedscope:
    case ReportForm::kPerfetto:
      return 1'000'000;
    default:
      return 0;
  }
}

void write_report(const decoder::ExportSource& source, const decoder::Report& report,
                  const ReportCommand& command, const decoder::PageOptions& page,
                  const decoder::TextSink& sink) {
  switch (command.form) {
    case ReportForm::kMarkdown:
      sink(decoder::report_markdown(report));
      return;
    case ReportForm::kJson:
      sink(decoder::report_json(report));
      return;
    case ReportForm::kHtml:
      decoder::write_page(source, report, page, sink);
      return;
    case ReportForm::kFolded:
      decoder::write_folded(source, sink);
      return;
    case ReportForm::kSpeedscope:
      decoder::write_speedscope(source, sink);
      return;
    case ReportForm::kPerfetto:
      decoder::write_trace_events(source, sink);
      return;
    case ReportForm::kText:
      sink(decoder::report_text(report, command.all_threads));
      return;
    case ReportForm::kSummary:
      sink(decoder::report_summary(report));
      return;
    case ReportForm::kSignature:
      sink(decoder::report_signature(report));
      return;
  }
}

bool needs_report(ReportForm form) {
  return form != ReportForm::kFolded && form != ReportForm::kSpeedscope &&
         form != ReportForm::kPerfetto;
}

decoder::ReportOptions report_options(const ReportCommand& command) {
  decoder::ReportOptions options;
  if (command.form == ReportForm::kSummary) {
    options.calls = kSummaryCalls;
    options.other_calls = kSummaryCalls / 4;
  }
  options.only_dead =
      command.form == ReportForm::kSummary || command.form == ReportForm::kSignature;
  if (command.calls != 0) options.calls = options.other_calls = command.calls;
  options.branches = command.branches;
  return options;
}

}  // namespace

int run_report(const ReportCommand& command) {
  const auto crash = CrashSource::open(command.file, command.roots);
  if (!crash) return fail_with(crash.error());
  const decoder::CoreFile& core = crash->core();
  const decoder::TraceArchive archive{core};
  tracee::ProgramMemory memory{core, crash->roots()};
  const auto symbols = decoder::make_elf_symbols(
      decoder::core_modules(core, [&](const std::string& path) { return memory.find_file(path); }),
      {crash->roots(), archive.names()});
  Output output{command.output};
  const auto fail_to_write = [&](int error) {
    return fail_with(command.output.empty()
                         ? fmt::format("cannot write to standard output: {}", std::strerror(error))
                         : cannot_write(command.output, std::strerror(error)));
  };
  if (output.failed()) return fail_to_write(output.finish());
  decoder::Report report;
  std::optional<CrashValues> values;
  if (command.values) values.emplace(core, memory);
  decoder::ValueSource* const source_of_values = values ? &*values : nullptr;
  if (needs_report(command.form)) {
    decoder::ReportOptions options = report_options(command);
    options.values = source_of_values;
    report = decoder::build_report(core, archive, memory, *symbols, options);
  }
  for (const std::string& problem : memory.problems()) report.notes.push_back(problem);
  decoder::ExportSource source{core, archive, memory, *symbols, command.branches};
  if (source.branches == 0) source.branches = usual_branches(command.form);
  write_report(source, report, command, {crash->roots(), source_of_values},
               [&output](std::string_view text) { output.put(text); });
  if (const int error = output.finish(); error != 0) return fail_to_write(error);
  return 0;
}

}  // namespace backtrail::server
