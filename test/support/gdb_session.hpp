// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Drives a real gdb against a server: sends commands and returns gdb's output.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/subprocess.hpp"

namespace backtrail::test {

/// The server that gdb talks to.
enum class Peer {
  kUnderTest,  ///< Backtrail's server, or the one in the environment variable BT_TEST_SERVER.
  kGdbserver,  ///< Debian's gdbserver, for comparison.
};

/// The connection between gdb and server.
enum class Wire {
  kPipe,  ///< `target remote | SERVER - PROGRAM`
  kTcp,   ///< A port that the system chooses.
  kUnix,  ///< A socket in a temporary folder.
};

struct GdbOptions {
  std::vector<std::string> program;  ///< With its arguments; empty to start none.
  std::string symbols;               ///< gdb's file; program[0] if empty.
  Peer peer = Peer::kUnderTest;
  Wire wire = Wire::kPipe;
  bool extended = false;                    ///< `target extended-remote`.
  std::vector<std::string> server_options;  ///< Options before the connection: --multi, --once, ...
  std::vector<std::string> environment = test_environment();  ///< Environment of gdb and server.
  std::string working_directory;
  std::vector<std::string> setup;  ///< Commands for gdb before it connects.
  bool connect = true;  ///< If false, the test connects by itself (see connect_command()).
  /// Limit for the whole session, so that a hanging server does not hang the tests.
  std::chrono::seconds time_limit{120};
};

/// A gdb and the server that it talks to. Every wait ends at the session's deadline; the test then
/// fails, everything is killed, and later commands return at once. If the test failed, the
/// destructor prints the whole conversation. No process remains.
class GdbSession {
 public:
  explicit GdbSession(GdbOptions options);
  ~GdbSession();
  GdbSession(const GdbSession&) = delete;
  GdbSession& operator=(const GdbSession&) = delete;

  /// Runs a command and returns gdb's output, once gdb accepts commands again. Several lines may
  /// form one command (`commands` ... `end`).
  std::string run(std::string_view command);
  /// Runs several commands and returns their output.
  std::string run_all(const std::vector<std::string>& commands);

  /// Sends a command without waiting. finish() waits for its end and returns its output.
  void start(std::string_view command);
  std::string finish();
  /// Sends Ctrl-C to gdb's terminal.
  void interrupt();

  /// Waits until gdb has printed `text` since the last command was sent.
  bool wait_for_gdb(std::string_view text);
  /// Waits until server or program have printed `text` to stdout or stderr.
  bool wait_for_server(std::string_view text);
  /// Returns everything that server and program have printed so far.
  [[nodiscard]] const std::string& server_output();

  /// Returns the value of an expression, as `output` prints it.
  std::string value(std::string_view expression);

  /// Returns "target remote ..." for this session's server, and starts the server if the connection
  /// needs it.
  std::string connect_command();

  /// Quits gdb and waits for gdb and server. Returns true if both ended by themselves.
  bool quit();
  /// Kills gdb, as in a crash.
  void kill_gdb();
  /// Returns true if the server has ended by itself (TCP and Unix: the process; pipe: its output).
  bool wait_for_server_end();
  /// Returns the exit status of a server on TCP or Unix that has ended; otherwise -1.
  [[nodiscard]] int server_exit_status();

  [[nodiscard]] bool alive() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Returns the path of a program built from test/inferiors.
[[nodiscard]] std::string inferior(std::string_view name);

/// Returns argv of the server under test, up to its options.
[[nodiscard]] std::vector<std::string> server_command(Peer peer);

}  // namespace backtrail::test
