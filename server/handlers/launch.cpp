// SPDX-License-Identifier: Apache-2.0
// vRun, R, QEnvironment*, QSetWorkingDir, QStartupWithShell, QDisableRandomization: start programs
// and set their environment.

#include <glob.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "ptrace/tracee/launch.hpp"
#include "server/handlers/handlers.hpp"
#include "server/handlers/process_rules.hpp"
#include "server/rsp/hex.hpp"
#include "server/session/events.hpp"
#include "server/session/notices.hpp"

namespace backtrail::server::handlers {
namespace {

/// Quotes a word for the shell, so that the program gets the arguments that the client sent.
/// gdbserver does the same.
std::string quoted_for_shell(const std::string& word) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./,:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string::npos) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += "'\\''";
    } else {
      out += c;
    }
  }
  return out + '\'';
}

/// Decodes a text; nullopt if it holds a NUL, which the kernel cannot take.
std::optional<std::string> decode_word(std::string_view digits) {
  auto word = rsp::text_from_hex(digits);
  if (!word || word->find('\0') != std::string::npos) return std::nullopt;
  return word;
}

struct CommandLine {
  std::string program;
  std::vector<std::string> arguments;
};

/// Parses HEXPROGRAM[;HEXARGUMENT...]. An empty program means the last one.
std::optional<CommandLine> parse_run(const SessionContext& context, std::string_view text) {
  CommandLine line;
  std::size_t begin = 0;
  for (bool first = true;; first = false) {
    const std::size_t end = std::min(text.find(';', begin), text.size());
    const auto word = decode_word(text.substr(begin, end - begin));
    if (!word) return std::nullopt;
    if (first) {
      line.program = *word;
    } else {
      line.arguments.push_back(context.state.launch.through_shell ? quoted_for_shell(*word)
                                                                  : *word);
    }
    if (end == text.size()) break;
    begin = end + 1;
  }
  if (line.program.empty()) line.program = context.state.launch.program;
  if (line.program.empty()) return std::nullopt;
  return line;
}

/// Launches the program of state.launch. Tells on stderr how that ended.
Result<pid_t> launch(SessionContext& context, ProcessControl& control) {
  const auto& spec = context.state.launch;
  const auto pid = control.launch(spec);
  if (!pid) {
    notices::cannot_exec(spec.program, pid.error().reason(),
                         tracee::launch_failure_text(pid.error(), spec));
    return pid;
  }
  notices::process_created(spec.program, *pid);
  context.documents.clear();
  return pid;
}

/// Returns what the client is told of a program that could not be run.
std::string why_not_run(const Error& error, const tracee::LaunchSpec& spec) {
  // For a program that ended at once, gdb and gdbserver have these words.
  if (tracee::startup_end(error)) return tracee::launch_failure_text(error, spec);
  return fmt::format("cannot run '{}': {}", spec.program, error.reason());
}

Reply run(SessionContext& context, std::string_view arguments) {
  ProcessControl* control = context.target.process_control();
  if (control == nullptr) return Reply::unknown();
  if (!may_add_process(context)) return Reply::error();
  auto line = parse_run(context, arguments);
  if (!line) return Reply::error();
  context.state.launch.program = std::move(line->program);
  context.state.launch.arguments = std::move(line->arguments);
  const auto pid = launch(context, *control);
  if (!pid) {
    return Reply::error(context.error_form(), why_not_run(pid.error(), context.state.launch));
  }
  // gdb assumes that the new process is selected, in non-stop too.
  const auto threads = context.target.thread_ids(*pid);
  if (!threads.empty()) context.general = threads.front();
  return report_new_process(context, *pid);
}

/// R has no reply; it needs the extended protocol.
Reply restart(SessionContext& context, std::string_view /*arguments*/) {
  ProcessControl* control = context.target.process_control();
  if (control == nullptr || !context.state.extended) return Reply::unknown();
  kill_all(context);
  notices::restarting();
  context.general = {};
  if (!context.state.launch.program.empty()) {
    const auto pid = launch(context, *control);
    if (pid) {
      const auto threads = context.target.thread_ids(*pid);
      if (!threads.empty()) context.general = threads.front();
    }
  }
  return Reply::none();
}

std::vector<std::string> own_environment() {
  std::vector<std::string> environment;
  for (char** entry = ::environ; entry != nullptr && *entry != nullptr; ++entry) {
    environment.emplace_back(*entry);
  }
  return environment;
}

void remove_variable(std::vector<std::string>& environment, std::string_view name) {
  std::erase_if(environment, [name](const std::string& entry) {
    return entry.starts_with(name) && entry.substr(name.size()).starts_with('=');
  });
}

std::vector<std::string>& changed_environment(SessionContext& context) {
  auto& environment = context.state.launch.environment;
  if (!environment) environment = own_environment();
  return *environment;
}

Reply environment_reset(SessionContext& context, std::string_view /*arguments*/) {
  context.state.launch.environment.reset();
  return Reply::ok();
}

Reply environment_set(SessionContext& context, std::string_view arguments) {
  const auto variable = decode_word(arguments);
  const std::size_t equals = variable ? variable->find('=') : std::string::npos;
  if (equals == std::string::npos || equals == 0) return Reply::error();
  auto& environment = changed_environment(context);
  remove_variable(environment, std::string_view{*variable}.substr(0, equals));
  environment.push_back(*variable);
  return Reply::ok();
}

Reply environment_unset(SessionContext& context, std::string_view arguments) {
  const auto name = decode_word(arguments);
  if (!name || name->empty()) return Reply::error();
  remove_variable(changed_environment(context), *name);
  return Reply::ok();
}

/// Replaces "~" or "~USER" at the beginning by that home directory, which gdb leaves to the server.
/// Returns other paths as they are.
std::string expand_tilde(const std::string& path) {
  if (!path.starts_with('~')) return path;
  const std::size_t end = std::min(path.find('/'), path.size());
  glob_t homes{};
  std::string expanded = path;
  if (::glob(path.substr(0, end).c_str(), GLOB_TILDE_CHECK, nullptr, &homes) == 0 &&
      homes.gl_pathc == 1) {
    expanded = homes.gl_pathv[0] + path.substr(end);
  }
  ::globfree(&homes);
  return expanded;
}

Reply working_directory(SessionContext& context, std::string_view arguments) {
  const auto path = decode_word(arguments);
  if (!path) return Reply::error();
  context.state.launch.working_directory = expand_tilde(*path);
  return Reply::ok();
}

Reply set_switch(bool& value, std::string_view arguments) {
  if (arguments != "0" && arguments != "1") return Reply::error();
  value = arguments == "1";
  return Reply::ok();
}

Reply startup_with_shell(SessionContext& context, std::string_view arguments) {
  return set_switch(context.state.launch.through_shell, arguments);
}

Reply disable_randomization(SessionContext& context, std::string_view arguments) {
  return set_switch(context.state.launch.disable_randomization, arguments);
}

constexpr std::array kLaunchPackets = {
    PacketEntry{"vRun;", PacketMatch::kPrefix, run},
    PacketEntry{"R", PacketMatch::kPrefix, restart},
    PacketEntry{"QEnvironmentReset", PacketMatch::kWhole, environment_reset},
    PacketEntry{"QEnvironmentHexEncoded:", PacketMatch::kPrefix, environment_set},
    PacketEntry{"QEnvironmentUnset:", PacketMatch::kPrefix, environment_unset},
    PacketEntry{"QSetWorkingDir:", PacketMatch::kPrefix, working_directory},
    PacketEntry{"QStartupWithShell:", PacketMatch::kPrefix, startup_with_shell},
    PacketEntry{"QDisableRandomization:", PacketMatch::kPrefix, disable_randomization},
};

}  // namespace

std::span<const PacketEntry> launch_packets() {
  return kLaunchPackets;
}

}  // namespace backtrail::server::handlers
