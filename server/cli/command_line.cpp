// SPDX-License-Identifier: Apache-2.0
#include "server/cli/command_line.hpp"

#include <array>
#include <cerrno>
#include <cstdlib>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "ptrace/tracee/launch.hpp"

namespace backtrail::server {
namespace {

constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kPackets{{
    {"vCont", "every vCont packet"},
    {"qC", "the question for the current thread"},
    {"qfThreadInfo", "lists of threads"},
    {"Tthread", "the thread in T stop replies"},
    {"threads", "the four above"},
    {"T", "T stop replies as a whole"},
}};

bool is_packet_name(std::string_view name) {
  for (const auto& [known, meaning] : kPackets) {
    if (known == name) return true;
  }
  return false;
}

}  // namespace

Command parse_command_line(std::span<const std::string> arguments) {
  if (arguments.empty()) return parse_backtrail_arguments({});
  const std::string_view path = arguments.front();
  const std::string_view name = path.substr(path.rfind('/') + 1);
  const auto rest = arguments.subspan(1);
  return name.find("gdbserver") != std::string_view::npos ? parse_gdbserver_arguments(rest)
                                                          : parse_backtrail_arguments(rest);
}

std::optional<WordsError> place_words(std::span<const std::string> words, bool attach,
                                      ServeOptions& options) {
  const WordsError usage{.usage = true, .text = {}};
  if (words.empty()) return usage;
  const std::string& where = words.front();
  words = words.subspan(1);
  if (!words.empty() && words.front() == "--attach") {
    attach = true;
    words = words.subspan(1);
  }
  if (attach) {
    if (words.size() != 1) return usage;
    options.attach = parse_pid(words.front());
    if (!options.attach) return usage;
  } else if (!words.empty()) {
    options.launch.program = words.front();
    for (const std::string& word : words.subspan(1)) {
      // The program gets the words as they are, also through a shell. gdbserver does the same.
      options.launch.arguments.push_back(options.launch.through_shell ? tracee::shell_quote(word)
                                                                      : word);
    }
  } else if (!options.multi) {
    return usage;
  }
  auto comm = parse_comm(where);
  if (!comm) return WordsError{.usage = false, .text = std::move(comm.error())};
  options.comm = std::move(*comm);
  options.launch.stdio_is_protocol = options.comm.kind == CommKind::kStdio;
  return std::nullopt;
}

Explained<std::set<std::string>> parse_packet_names(std::string_view list) {
  std::set<std::string> names;
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    const std::string_view name = list.substr(0, comma);
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
    if (!is_packet_name(name))
      return explain(fmt::format("Don't know how to disable \"{}\".", name));
    if (name == "threads") {
      names.insert({"vCont", "Tthread", "qC", "qfThreadInfo"});
    } else {
      names.emplace(name);
    }
  }
  return names;
}

std::string packet_names_help() {
  std::string text = "Disableable packets:\n";
  for (const auto& [name, meaning] : kPackets) text += fmt::format("  {:<12}  {}\n", name, meaning);
  return text;
}

std::optional<pid_t> parse_pid(const std::string& text) {
  if (text.empty() || text.front() < '0' || text.front() > '9') return std::nullopt;
  errno = 0;
  char* end = nullptr;
  const unsigned long value = std::strtoul(text.c_str(), &end, 0);
  if (errno != 0 || *end != '\0' || value == 0 ||
      value > static_cast<unsigned long>(std::numeric_limits<pid_t>::max())) {
    return std::nullopt;
  }
  return static_cast<pid_t>(value);
}

}  // namespace backtrail::server
