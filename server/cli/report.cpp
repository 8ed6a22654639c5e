#include "server/cli/report.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>

#include <fmt/format.h>

#include "decoder/report/report_builder.hpp"
#include "decoder/report/report_text.hpp"
#include "decoder/symbols/core_modules.hpp"
#include "ptrace/core/core_memory.hpp"
#include "ptrace/core/mapped_file.hpp"

namespace backtrail::server {
namespace {

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};

int say(const std::string& about, const std::string& what) {
  fmt::print(stderr, "backtrail: {}: {}\n", about, what);
  return 1;
}

int write(const ReportCommand& command, const std::string& text) {
  std::unique_ptr<std::FILE, CloseFile> opened;
  std::FILE* out = stdout;
  if (!command.output.empty()) {
    opened.reset(std::fopen(command.output.c_str(), "wb"));
    if (!opened) return say(command.output, std::strerror(errno));
    out = opened.get();
  }
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  if (!written || std::fflush(out) != 0) {
    return say(command.output.empty() ? "standard output" : command.output, std::strerror(errno));
  }
  return 0;
}

std::string form_text(const decoder::Report& report, ReportForm form) {
  switch (form) {
    case ReportForm::kMarkdown:
      return decoder::report_markdown(report);
    case ReportForm::kJson:
      return decoder::report_json(report);
    case ReportForm::kText:
      break;
  }
  return decoder::report_text(report);
}

}  // namespace

int run_report(const ReportCommand& command) {
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
  decoder::Report report = decoder::build_report(*core, archive, memory, *symbols, options);
  for (const std::string& problem : memory.problems()) report.notes.push_back(problem);
  return write(command, form_text(report, command.form));
}

}  // namespace backtrail::server
