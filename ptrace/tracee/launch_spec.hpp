// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Describes which program to start, and how.

#include <optional>
#include <string>
#include <vector>

namespace backtrail::tracee {

struct LaunchSpec {
  std::string program;  ///< As typed; looked up in PATH if it has no slash.
  /// Arguments. With through_shell they are words in the shell's language, as gdbserver passes
  /// them.
  std::vector<std::string> arguments;
  std::vector<std::string> wrapper;  ///< Prefix of the command: `wrapper... program arguments...`.
  bool through_shell = true;
  /// Look for the program before the shell does, for a clear error.
  bool check_program = true;
  bool disable_randomization = true;
  std::string working_directory;  ///< Empty: the server's.
  /// The whole environment ("NAME=VALUE"); nullopt: the server's own.
  std::optional<std::vector<std::string>> environment;
  /// Behave like a command that runs another: the program stays in the server's process group, a
  /// bare name is looked up in PATH only, and argv[0] is the name as typed. Excludes through_shell.
  bool transparent = false;
  bool stdio_is_protocol = false;  ///< Give the program /dev/null as stdin, and stderr as stdout.
};

}  // namespace backtrail::tracee
