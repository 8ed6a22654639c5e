// SPDX-License-Identifier: Apache-2.0
// Command line of `backtrail serve` and `backtrail doctor`.

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "server/cli/cli_words.hpp"
#include "server/cli/command_line.hpp"
#include "server/cli/help_text.hpp"

namespace backtrail::server {
namespace {

/// Variables that CLI11 fills in.
struct Values {
  bool attach = false;
  std::string source = "auto";
  std::string depth = "free";
  std::string disable_packet;
  bool debug = false;
  ServeOptions serve;
};

class ServeFormatter final : public CLI::Formatter {
 public:
  std::string make_usage(const CLI::App* /*app*/, std::string /*name*/) const override {
    return "Usage: backtrail serve [OPTIONS] COMM PROG [ARGS...]\n"
           "       backtrail serve [OPTIONS] --attach COMM PID\n"
           "       backtrail serve [OPTIONS] --multi COMM\n";
  }
  /// Removes CLI11's marks of negated names.
  std::string make_option_name(const CLI::Option* option, bool positional) const override {
    std::string name = CLI::Formatter::make_option_name(option, positional);
    constexpr std::string_view kMark = "{false}";
    for (std::size_t at = 0; (at = name.find(kMark)) != std::string::npos;) {
      name.erase(at, kMark.size());
    }
    return name;
  }
};

void add_serve_options(CLI::App& serve, Values& values) {
  serve.formatter(std::make_shared<ServeFormatter>());
  serve.footer(
      "COMM is where gdb connects to: :PORT (from this machine only; 0 takes a free port),\n"
      "HOST:PORT or [V6]:PORT (at this address only; 0.0.0.0:PORT means every address), "
      "unix:PATH,\n"
      "- (standard input and output) or the path of a serial device.\n\n"
      "  backtrail serve :2345 ./prog        then in gdb: target remote :2345\n"
      "  gdb -ex 'target remote | backtrail serve - ./prog' ./prog");
  serve.add_flag("--attach", values.attach, "Attach to the running process PID");
  serve.add_flag("--multi", values.serve.multi,
                 "Wait for gdb to name the program, and keep serving when it ends");
  serve.add_flag("--once", values.serve.once, "Serve one connection, then exit");
  serve.add_option("--wrapper", "Command that starts the program, ended by --")
      ->type_name("WORDS... --");
  serve.add_flag("--disable-randomization,!--no-disable-randomization",
                 values.serve.launch.disable_randomization,
                 "Turn off address randomization for the program (default: yes)");
  serve.add_flag("--startup-with-shell,!--no-startup-with-shell", values.serve.launch.through_shell,
                 "Start the program through a shell; ARGS reach it unchanged (default: yes)");
  serve
      .add_option("--source", values.source,
                  "Branch source: auto, perf-pt, perf-bts, lbr, cache, step")
      ->check([](const std::string& name) {
        return tracee::source_kind_from(name)
                   ? std::string{}
                   : name + " is not one of auto, perf-pt, perf-bts, lbr, cache, step";
      })
      ->type_name("KIND");
  serve.add_flag("--from-start", values.serve.from_start,
                 "Record from the start: `reverse-step` works without `record btrace`");
  add_values_option(serve, values.depth);
  CLI::Option* tail =
      serve.add_option("--tail", values.serve.tail.path, "Socket file for `backtrail tail`");
  tail->type_name("PATH");
  serve
      .add_option("--tail-spool", values.serve.tail.spool_folder,
                  "Folder that buffers records for a slow `backtrail tail`, so that none is lost")
      ->type_name("FOLDER")
      ->needs(tail);
  serve
      .add_option("--tail-spool-size", values.serve.tail.spool_bytes,
                  "Most bytes buffered for each tail (default: 4G)")
      ->transform(CLI::AsSizeValue(false))
      ->type_name("SIZE")
      ->needs(tail);
  serve.add_option("--log", values.serve.log, "Levels, for example rsp:debug,ptrace:debug")
      ->type_name("SPEC");
  serve.add_option("--log-file", values.serve.log_file, "Log to this file, not to stderr")
      ->type_name("FILE");
  serve.add_flag("--debug", values.debug, "Log everything (--log debug)");
  serve.add_option("--disable-packet", values.disable_packet, "Disable these packets (for tests)")
      ->type_name("LIST");
}

bool takes_a_value(const std::string& word) {
  return word == "--source" || word == "--values" || word == "--tail" || word == "--tail-spool" ||
         word == "--tail-spool-size" || word == "--log" || word == "--log-file" ||
         word == "--disable-packet";
}

/// Removes "--wrapper W... --", which CLI11 cannot parse, from the options.
/// @return The error if the closing "--" is missing.
std::optional<std::string> extract_wrapper(std::vector<std::string>& words,
                                           std::vector<std::string>& wrapper) {
  for (std::size_t i = 0; i < words.size() && words[i].size() > 1 && words[i].front() == '-'; ++i) {
    if (takes_a_value(words[i])) {
      ++i;
    } else if (words[i] == "--wrapper") {
      const auto begin = words.begin() + static_cast<std::ptrdiff_t>(i);
      const auto end = std::find(begin, words.end(), "--");
      if (end == words.end() || end == begin + 1) {
        return "--wrapper needs at least one word, and -- after the last one";
      }
      wrapper.insert(wrapper.end(), begin + 1, end);
      words.erase(begin, end + 1);
      --i;
    }
  }
  return std::nullopt;
}

Command finish_decode(DecodeOptions options, const std::string& format, const std::string& base) {
  options.ds_format = arch::x86::ds_format_from(format);
  if (!base.empty()) {
    char* end = nullptr;
    options.base = std::strtoull(base.c_str(), &end, 0);
    if (*end != '\0') return wrong_words("decode", base + " is not an address");
  }
  if (!options.ds_format && (options.base || options.all))
    return wrong_words("decode", "--base and --all need --ds-format");
  return options;
}

Command finish_serve(const CLI::App& serve, Values& values) {
  ServeOptions& options = values.serve;
  options.source = *tracee::source_kind_from(values.source);
  options.values = value_depth_from(values.depth);
  if (options.values != tracee::ValueDepth::kFree) {
    if (options.source == tracee::SourceKind::kAuto) options.source = tracee::SourceKind::kCache;
    if (options.source != tracee::SourceKind::kCache) {
      return wrong_words("serve", "--values=" + values.depth + " needs --source cache");
    }
  }
  if (values.debug) options.log = options.log.empty() ? "debug" : "debug," + options.log;
  auto names = parse_packet_names(values.disable_packet);
  if (!names) return wrong_words("serve", names.error() + "\n" + packet_names_help());
  options.disabled_packets = std::move(*names);

  const std::vector<std::string> words = serve.remaining();
  if (!words.empty() && words.front().size() > 1 && words.front().front() == '-') {
    return wrong_words("serve", "unknown option " + words.front());
  }
  if (const auto error = place_words(words, values.attach, options)) {
    if (!error->usage) return wrong_words("serve", error->text);
    return wrong_words("serve", values.attach
                                    ? "serve --attach needs COMM and a process id"
                                    : "serve needs COMM and a program, --attach PID or --multi");
  }
  return options;
}

}  // namespace

Command parse_backtrail_arguments(std::span<const std::string> arguments) {
  std::vector<std::string> words{arguments.begin(), arguments.end()};
  Values values;
  if (!words.empty() && words.front() == "serve") {
    std::vector<std::string> rest{words.begin() + 1, words.end()};
    if (const auto error = extract_wrapper(rest, values.serve.launch.wrapper)) {
      return wrong_words("serve", *error);
    }
    words.resize(1);
    words.insert(words.end(), rest.begin(), rest.end());
  }

  // Subcommands with a parser of their own.
  constexpr std::pair<std::string_view, Command (*)(std::span<const std::string>)> kOthers[] = {
      {"record", parse_record_arguments}, {"replay", parse_replay_arguments},
      {"report", parse_report_arguments}, {"info", parse_info_arguments},
      {"pack", parse_pack_arguments},     {"why", parse_why_arguments},
  };
  for (const auto& [name, parse] : kOthers) {
    if (!words.empty() && words.front() == name) return parse(std::span{words}.subspan(1));
  }

  CLI::App app{"A branch trace in gdb, everywhere: a server for gdb like gdbserver", "backtrail"};
  app.set_version_flag("--version", backtrail_version().substr(0, backtrail_version().size() - 1));
  app.require_subcommand(1);
  CLI::App& serve = *app.add_subcommand("serve", "Serve a program or a running process to gdb");
  add_serve_options(serve, values);
  serve.prefix_command();
  app.add_subcommand("record", "Record a program and its children, without gdb");
  app.add_subcommand("replay", "Serve a crash file to gdb");
  app.add_subcommand("report",
                     "Report the last calls before a crash: text, a page, files for viewers");
  app.add_subcommand("why", "Tell where a value was last written before a crash, and from what");
  app.add_subcommand("info", "List the contents of a crash file");
  app.add_subcommand("pack", "Pack a crash file, its programs and their sources into one archive");
  CLI::App& doctor = *app.add_subcommand(
      "doctor", "List and test this machine's branch sources, and explain what others need");
  DoctorOptions doctor_options;
  doctor.add_flag("--known-program", doctor_options.known_program)->group("");
  DecodeOptions decode_options;
  std::string ds_format;
  std::string ds_base;
  CLI::App& decode = *app.add_subcommand(
      "decode",
      "Print the branches or packets in a perf.data file, a dump of a debug store, or the output "
      "of tail");
  decode.add_option("FILE", decode_options.file, "The file")->required();
  decode
      .add_option("--ds-format", ds_format, "FILE is the memory of a debug store, in this format")
      ->check(CLI::IsMember({"core2", "pentium-m", "netburst", "netburst64"}))
      ->type_name("FORM");
  decode
      .add_option("--base", ds_base,
                  "Address of FILE's first byte (default: the buffer is at FILE's end)")
      ->type_name("ADDRESS");
  decode.add_flag("--all", decode_options.all,
                  "Also print the older records after the write pointer");
  TailOptions tail_options;
  CLI::App& tail = *app.add_subcommand(
      "tail", "Print the branches of a server's recorded threads, while gdb uses them");
  tail.add_option("--connect", tail_options.path, "The socket of serve --tail")
      ->required()
      ->type_name("PATH");
  tail.add_option("--thread", tail_options.thread, "Only this thread")->type_name("TID");
  tail.add_option("--process", tail_options.process, "Only this process, with all its threads")
      ->type_name("PID");
  tail.add_option("--records", tail_options.records, "End after N records")->type_name("N");
  std::string tail_format;
  tail.add_option("--format", tail_format,
                  "Output for people, for tools, or for `backtrail decode`")
      ->check(CLI::IsMember({"text", "perf-script", "raw"}))
      ->type_name("FORM");
  WarmOptions warm_options;
  CLI::App& warm = *app.add_subcommand(
      "warm", "Translate programs and their libraries ahead, so that first runs are fast");
  warm.add_option("PROG", warm_options.programs, "Programs, which are not run")->required();
  app.footer("The program backtrail-gdbserver takes gdbserver's arguments.");
  if (words.empty()) return PrintAndExit{1, app.help()};
  if (auto exit = parse_words(app, words)) return *exit;
  if (doctor.parsed()) return doctor_options;
  if (tail_format == "perf-script") tail_options.format = TailFormat::kPerfScript;
  if (tail_format == "raw") tail_options.format = TailFormat::kRaw;
  if (tail.parsed()) return tail_options;
  if (warm.parsed()) return warm_options;
  if (decode.parsed()) return finish_decode(std::move(decode_options), ds_format, ds_base);
  return finish_serve(serve, values);
}

}  // namespace backtrail::server
