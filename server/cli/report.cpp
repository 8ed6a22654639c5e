#include "server/cli/report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string_view>

#include <fmt/format.h>

#include "decoder/export/exports.hpp"
#include "decoder/export/html_page.hpp"
#include "decoder/report/clean_text.hpp"
#include "decoder/report/report_builder.hpp"
#include "decoder/report/report_text.hpp"
#include "decoder/symbols/core_modules.hpp"
#include "ptrace/core/core_memory.hpp"
#include "ptrace/core/mapped_file.hpp"
#include "server/crash/archive.hpp"
#include "server/crash/pack.hpp"

namespace backtrail::server {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

int say(const std::string& about, const std::string& what) {
  fmt::print(stderr, "backtrail: {}: {}\n", decoder::printable(about), decoder::printable(what));
  return 1;
}

/// Standard output or a file; remembers the first error.
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
  /// 0: everything was written.
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

/// Branches of each thread that are exported if nobody says how many: what viewers bear.
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
                  const ReportCommand& command, const decoder::TextSink& sink) {
  switch (command.form) {
    case ReportForm::kMarkdown:
      sink(decoder::report_markdown(report));
      return;
    case ReportForm::kJson:
      sink(decoder::report_json(report));
      return;
    case ReportForm::kHtml:
      decoder::write_page(source, report, {command.roots}, sink);
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
      sink(decoder::report_text(report));
      return;
  }
}

bool needs_report(ReportForm form) {
  return form == ReportForm::kText || form == ReportForm::kMarkdown || form == ReportForm::kJson ||
         form == ReportForm::kHtml;
}

int report_core(const ReportCommand& command) {
  const auto file = tracee::MappedFile::open(command.file);
  if (!file) return say(command.file, file.error().message());
  const auto core = decoder::CoreFile::parse(file->bytes());
  if (!core) return say(command.file, core.error().message());
  const decoder::TraceArchive archive{*core};
  tracee::CoreMemory memory{*core, command.roots};
  const auto symbols = decoder::make_elf_symbols(
      decoder::core_modules(*core, [&](const std::string& path) { return memory.find_file(path); }),
      {command.roots});
  decoder::ReportOptions options;
  if (command.calls != 0) options.calls = options.other_calls = command.calls;
  options.branches = command.branches;
  Output output{command.output};
  const std::string place = command.output.empty() ? "standard output" : command.output;
  if (output.failed()) return say(place, std::strerror(output.finish()));
  decoder::Report report;
  if (needs_report(command.form)) {
    report = decoder::build_report(*core, archive, memory, *symbols, options);
  }
  for (const std::string& problem : memory.problems()) report.notes.push_back(problem);
  decoder::ExportSource source{*core, archive, memory, *symbols, command.branches};
  if (source.branches == 0) source.branches = usual_branches(command.form);
  write_report(source, report, command, [&output](std::string_view text) { output.put(text); });
  if (const int error = output.finish(); error != 0) return say(place, std::strerror(error));
  return 0;
}

}  // namespace

int run_report(const ReportCommand& given) {
  if (!looks_like_archive(given.file)) return report_core(given);
  const auto unpacked = UnpackedCrash::open(given.file);
  if (!unpacked) return say(given.file, unpacked.error());
  ReportCommand command = given;
  command.file = unpacked->core_file();
  command.roots.insert(command.roots.begin(), unpacked->files());
  return report_core(command);
}

}  // namespace backtrail::server
