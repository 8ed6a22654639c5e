// SPDX-License-Identifier: Apache-2.0
// gdbserver's command line. Options end at the first word that is not an option, so that the
// program's arguments stay its own.

#include <fmt/format.h>

#include "server/cli/command_line.hpp"
#include "server/cli/help_text.hpp"

namespace backtrail::server {
namespace {

PrintAndExit usage_error() {
  return {1, gdbserver_usage()};
}

/// Reads options one by one. `exit` is set by an option that ends the program.
class OptionReader {
 public:
  explicit OptionReader(std::span<const std::string> words) : words_{words} {
    options.as_gdbserver = true;
    options.launch.check_program = false;  // clients expect the shell's error
  }

  void read_all() {
    while (!exit && !words_.empty() && is_option(words_.front())) read(take());
  }
  [[nodiscard]] std::span<const std::string> rest() const { return words_; }

  ServeOptions options;
  bool attach = false;
  std::optional<PrintAndExit> exit;

 private:
  static bool is_option(const std::string& word) { return word.size() > 1 && word.front() == '-'; }

  std::string take() {
    std::string word = words_.front();
    words_ = words_.subspan(1);
    return word;
  }

  void read(const std::string& word) {
    const std::size_t equals = word.find('=');
    const std::string name = word.substr(0, equals);
    std::optional<std::string> value;
    if (equals != std::string::npos) value = word.substr(equals + 1);
    if (!(value ? read_valued(name, *value) : read_plain(name))) {
      exit = PrintAndExit{1, fmt::format("Unknown argument: {}\n", word)};
    }
  }

  bool read_plain(const std::string& name);
  bool read_valued(const std::string& name, const std::string& value);
  void read_wrapper();
  void read_source(const std::string& value);
  void read_debug_format(std::string_view value);
  bool read_debug_components(std::string_view value);
  void add_log(std::string_view levels) {
    if (!options.log.empty()) options.log += ',';
    options.log += levels;
  }

  std::span<const std::string> words_;
};

bool OptionReader::read_plain(const std::string& name) {
  if (name == "--attach") {
    attach = true;
  } else if (name == "--multi") {
    options.multi = true;
  } else if (name == "--once") {
    options.once = true;
  } else if (name == "--wrapper") {
    read_wrapper();
  } else if (name == "--disable-randomization" || name == "--no-disable-randomization") {
    options.launch.disable_randomization = name.substr(0, 5) != "--no-";
  } else if (name == "--startup-with-shell" || name == "--no-startup-with-shell") {
    options.launch.through_shell = name.substr(0, 5) != "--no-";
  } else if (name == "--debug") {
    add_log("debug");
  } else if (name == "--remote-debug") {
    add_log("rsp:debug");
  } else if (name == "--event-loop-debug") {
    add_log("server:debug");
  } else if (name == "--disable-packet") {
    exit = PrintAndExit{0, packet_names_help()};
  } else if (name == "--help") {
    exit = PrintAndExit{0, gdbserver_usage()};
  } else if (name == "--version") {
    exit = PrintAndExit{0, gdbserver_version()};
  } else if (name == "--selftest") {
    exit = PrintAndExit{0, "Selftests have been disabled for this build.\n"};
  } else if ((name == "--source" || name == "--log" || name == "--log-file") && !words_.empty()) {
    return read_valued(name, take());
  } else {
    return false;
  }
  return true;
}

bool OptionReader::read_valued(const std::string& name, const std::string& value) {
  if (name == "--disable-packet") {
    auto names = parse_packet_names(value);
    if (names) {
      options.disabled_packets.merge(*names);
    } else {
      exit = PrintAndExit{1, names.error() + "\n\n" + packet_names_help()};
    }
  } else if (name == "--debug-format") {
    read_debug_format(value);
  } else if (name == "--debug-file" || name == "--log-file") {
    options.log_file = value;
  } else if (name == "--log") {
    add_log(value);
  } else if (name == "--debug") {
    return read_debug_components(value);
  } else if (name == "--source") {
    read_source(value);
  } else if (name == "--selftest") {
    return read_plain(name);
  } else {
    return false;
  }
  return true;
}

void OptionReader::read_wrapper() {
  while (!words_.empty() && words_.front() != "--") options.launch.wrapper.push_back(take());
  if (words_.empty() || options.launch.wrapper.empty()) {
    exit = usage_error();
  } else {
    take();
  }
}

void OptionReader::read_source(const std::string& value) {
  if (const auto kind = tracee::source_kind_from(value)) {
    options.source = *kind;
  } else {
    exit = PrintAndExit{1, fmt::format("Unknown source: {} (one of auto, perf-pt, perf-bts, lbr, "
                                       "cache, step)\n",
                                       value)};
  }
}

void OptionReader::read_debug_format(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    const std::string_view word = value.substr(0, comma);
    value = comma == std::string_view::npos ? "" : value.substr(comma + 1);
    if (word.empty() || word == "all" || word == "none" || word == "timestamp") continue;
    exit = PrintAndExit{1, fmt::format("Unknown debug-format argument: \"{}\"\n", word)};
    return;
  }
}

/// Parses gdbserver 16's --debug=all,threads,event-loop,remote; a minus before a word removes it.
bool OptionReader::read_debug_components(std::string_view value) {
  while (!value.empty()) {
    const std::size_t comma = value.find(',');
    std::string_view word = value.substr(0, comma);
    value = comma == std::string_view::npos ? "" : value.substr(comma + 1);
    const bool off = !word.empty() && word.front() == '-';
    if (off) word.remove_prefix(1);
    std::string_view modules;
    if (word == "all") {
      modules = "";
    } else if (word == "threads") {
      modules = "ptrace:";
    } else if (word == "event-loop") {
      modules = "server:";
    } else if (word == "remote") {
      modules = "rsp:";
    } else {
      return false;
    }
    add_log(fmt::format("{}{}", modules, off ? "warn" : "debug"));
  }
  return true;
}

}  // namespace

Command parse_gdbserver_arguments(std::span<const std::string> arguments) {
  OptionReader reader{arguments};
  reader.read_all();
  if (reader.exit) return *reader.exit;
  if (const auto error = place_words(reader.rest(), reader.attach, reader.options)) {
    if (error->usage) return usage_error();
    return PrintAndExit{1, fmt::format("backtrail-gdbserver: {}\nExiting\n", error->text)};
  }
  return reader.options;
}

}  // namespace backtrail::server
