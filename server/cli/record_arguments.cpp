// SPDX-License-Identifier: Apache-2.0
// Command line of `backtrail record`.

#include <cstdlib>
#include <limits>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "server/cli/cli_words.hpp"
#include "server/cli/command_line.hpp"

namespace backtrail::server {
namespace {

PrintAndExit wrong_record_words(const std::string& text) {
  return wrong_words("record", text);
}

/// Parses "64M", "512k", "1G" or "4096".
std::optional<std::uint64_t> parse_size(const std::string& text) {
  std::uint64_t value = 0;
  std::size_t at = 0;
  for (; at < text.size() && text[at] >= '0' && text[at] <= '9'; ++at) {
    const auto digit = static_cast<std::uint64_t>(text[at] - '0');
    if (value > (std::numeric_limits<std::uint64_t>::max() - digit) / 10) return std::nullopt;
    value = value * 10 + digit;
  }
  if (at == 0 || text.size() > at + 1) return std::nullopt;
  unsigned shift = 0;
  if (at < text.size()) {
    switch (text[at]) {
      case 'k':
      case 'K':
        shift = 10;
        break;
      case 'm':
      case 'M':
        shift = 20;
        break;
      case 'g':
      case 'G':
        shift = 30;
        break;
      default:
        return std::nullopt;
    }
  }
  constexpr std::uint64_t kMost = 1ULL << 40;
  if (value == 0 || value > kMost >> shift) return std::nullopt;
  return value << shift;
}

class RecordFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: backtrail record [OPTIONS] [--] PROG [ARGS...]\n";
  }
};

struct RecordValues {
  std::string source = "auto";
  std::string ring = "64M";
  std::string output;
  std::string on = "signal,sanitizer";
  std::string max_disk;
  bool full = false;
  bool undumpable = false;
  bool pack = false;
  bool attachment = false;
  bool all = false;
  bool times = true;
  bool statistics = false;
  std::string values = "free";
  std::string log;
};

void add_options(CLI::App& app, RecordValues& values) {
  app.formatter(std::make_shared<RecordFormatter>());
  app.footer(
      "Output, exit status and signals are the program's own. Its children are recorded too, each\n"
      "thread into a history of its own, in memory.");
  app.add_option("--source", values.source,
                 "Branch source: cache (also auto), step, or the CPU's perf-pt, perf-bts, lbr; "
                 "none records nothing")
      ->check([](const std::string& name) {
        return name == "none" || tracee::source_kind_from(name)
                   ? std::string{}
                   : name + " is not one of auto, cache, step, perf-pt, perf-bts, lbr, none";
      })
      ->type_name("KIND");
  app.add_option(
         "--ring", values.ring,
         "Size of each thread's history, in bytes or with k, M, G (default: 64M); memory is "
         "allocated as it fills")
      ->type_name("SIZE");
  app.add_option("-o,--output", values.output,
                 "Keep a crash file if the program ends badly, or if a child does and the program "
                 "fails; %p is the process, %e its name, %t the time; a folder means "
                 "FOLDER/%e.%p.core and is created")
      ->type_name("FILE");
  app.add_option("--on", values.on,
                 "Ends that keep a file: signal, sanitizer, abort, exit (a status other than 0), "
                 "timeout=SECONDS (ends the run, status 124), always; comma separated (default: "
                 "signal,sanitizer)")
      ->type_name("LIST");
  app.add_flag("--full", values.full, "Include unchanged pages of files in the crash file");
  app.add_flag("--dump-undumpable", values.undumpable,
               "Keep crash files also of processes that the kernel does not dump: "
               "prctl(PR_SET_DUMPABLE, 0), changed users; for root");
  app.add_flag("--pack", values.pack,
               "Pack crash files into FILE.tar.zst at once, with the program, its libraries, debug "
               "files and sources");
  app.add_flag("--attachment", values.attachment,
               "Print [[ATTACHMENT|PATH]] on a line before that of each crash file, by which JUnit "
               "reports attach it");
  app.add_flag("--all", values.all,
               "Keep every branch in the crash file; branches are compressed to disk beside FILE");
  app.add_option(
         "--max-disk", values.max_disk,
         "Most bytes of a crash file on disk, and of --all's records before it (default for "
         "these: 2G)")
      ->type_name("SIZE");
  app.add_flag("--times,!--no-times", values.times,
               "Crash files show when threads were on a CPU, if the kernel allows it (default)");
  add_values_option(app, values.values);
  app.add_flag("--stats", values.statistics, "Print on stderr what was recorded and what it cost");
  app.add_option("--log", values.log, "Levels, for example ptrace:debug")->type_name("SPEC");
}

}  // namespace

Command parse_record_arguments(std::span<const std::string> arguments) {
  RecordValues values;
  CLI::App app{"Record a program and its children, without gdb", "backtrail record"};
  add_options(app, values);
  app.prefix_command();
  if (auto exit = parse_words(app, arguments)) return *exit;
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().starts_with('-')) {
    return wrong_record_words("unknown option " + words.front());
  }
  if (words.empty()) return wrong_record_words("record needs a program");
  const auto ring = parse_size(values.ring);
  if (!ring) return wrong_record_words(values.ring + " is not a size: write 4096, 512k, 64M or 1G");

  RecordOptions options;
  options.crash_file = values.output;
  options.core.full = values.full;
  options.undumpable = values.undumpable;
  options.pack = values.pack;
  options.attachments = values.attachment;
  // GitLab's folder of the project.
  if (const char* project = std::getenv("CI_PROJECT_DIR")) options.project = project;
  if (!values.max_disk.empty()) {
    const auto most = parse_size(values.max_disk);
    if (!most)
      return wrong_record_words(values.max_disk + " is not a size: write 4096, 512k, 64M or 1G");
    options.core.max_bytes = *most;
  }
  auto keep = KeepPolicy::parse(values.on);
  if (!keep) return wrong_record_words(keep.error());
  options.keep = *keep;
  options.recorder.limit = keep->timeout;
  constexpr std::uint64_t kSpoolBytes = 2ULL << 30;
  if (values.output.empty() && app.count("-o") != 0) {
    return wrong_record_words("-o needs the name of a file, or of a folder");
  }
  if (values.output.empty()) {
    // A time limit is useful without a file too.
    if (app.count("--on") != 0 && !keep->timeout) return wrong_record_words("--on needs -o");
    for (const char* option : {"--full", "--dump-undumpable", "--pack", "--attachment", "--all",
                               "--max-disk", "--values"}) {
      if (app.count(option) != 0) return wrong_record_words(fmt::format("{} needs -o", option));
    }
  }
  options.all = values.all;
  options.spool_bytes = values.max_disk.empty() ? kSpoolBytes : options.core.max_bytes;
  options.launch.program = words.front();
  options.launch.arguments.assign(words.begin() + 1, words.end());
  options.launch.through_shell = false;
  options.launch.transparent = true;
  options.recorder.ring_bytes = *ring;
  if (values.all) {
    // The spool holds the records; the threads' own histories stay unread.
    options.recorder.ring_bytes = 64ULL << 10;
    options.recorder.flush_every = std::chrono::milliseconds{10};
  }
  options.recorder.times = values.times && !values.output.empty();
  options.recorder.statistics = values.statistics;
  options.recorder.traced = values.source != "none";
  const auto source = tracee::source_kind_from(values.source).value_or(tracee::SourceKind::kAuto);
  // `auto` means cache here: it works everywhere and keeps more than the CPU's buffers.
  options.recorder.source =
      source == tracee::SourceKind::kAuto ? tracee::SourceKind::kCache : source;
  options.recorder.values = value_depth_from(values.values);
  if (options.recorder.values != tracee::ValueDepth::kFree) {
    if (values.all) {
      return wrong_record_words("--values=" + values.values + " cannot be used with --all");
    }
    if (!options.recorder.traced || options.recorder.source != tracee::SourceKind::kCache) {
      return wrong_record_words("--values=" + values.values + " needs --source cache");
    }
  }
  options.log = values.log;
  return options;
}

}  // namespace backtrail::server
