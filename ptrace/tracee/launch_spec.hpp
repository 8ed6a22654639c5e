#pragma once
/// @file
/// What to start, and how.

#include <optional>
#include <string>
#include <vector>

namespace backtrail::tracee {

struct LaunchSpec {
  std::string program;  ///< As typed; looked up in PATH when it has no slash.
  /// The arguments. With the shell they are words of its language, as gdbserver passes them.
  std::vector<std::string> arguments;
  std::vector<std::string> wrapper;  ///< Runs `wrapper... program arguments...`.
  bool through_shell = true;
  /// Look for the program before the shell does, for an error that says what is wrong.
  bool check_program = true;
  bool disable_randomization = true;
  std::string working_directory;  ///< Empty: the server's.
  /// The whole environment ("NAME=VALUE"), or nothing for the server's own.
  std::optional<std::vector<std::string>> environment;
  /// As a command that runs another: the program stays in our process group, a bare name is looked
  /// up in PATH only, and argv[0] is the name as typed. Not through the shell.
  bool transparent = false;
  bool stdio_is_protocol = false;  ///< stdin from /dev/null, stdout to stderr.
};

}  // namespace backtrail::tracee
