#pragma once
/// @file
/// Drives a real gdb against a server: commands in, gdb's words out.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "test/support/subprocess.hpp"

namespace backtrail::test {

/// Which server gdb talks to.
enum class Peer {
  kUnderTest,  ///< Ours; or what the environment variable BT_TEST_SERVER names.
  kGdbserver,  ///< Debian's, for comparison.
};

/// How gdb and server are connected.
enum class Wire {
  kPipe,  ///< `target remote | SERVER - PROGRAM`
  kTcp,   ///< A port that the system chooses.
  kUnix,  ///< A socket in a temporary folder.
};

struct GdbOptions {
  std::vector<std::string> program;  ///< With its arguments. Empty: none is started.
  std::string symbols;               ///< gdb's file; empty: program[0].
  Peer peer = Peer::kUnderTest;
  Wire wire = Wire::kPipe;
  bool extended = false;                    ///< `target extended-remote`.
  std::vector<std::string> server_options;  ///< Before the connection: --multi, --once, ...
  std::vector<std::string> environment = test_environment();  ///< Of gdb and server.
  std::string working_directory;
  std::vector<std::string> setup;  ///< Commands for gdb before it connects.
  bool connect = true;             ///< False: the test connects by itself (see connect_command).
  /// For everything the session does. A hanging server must not hang the tests.
  std::chrono::seconds time_limit{120};
};

/// One gdb and the server it talks to. Every wait ends at the session's deadline; then the test
/// fails, everything is killed and later commands return at once. When a test has failed, the
/// destructor prints the whole conversation. No process is left behind.
class GdbSession {
 public:
  explicit GdbSession(GdbOptions options);
  ~GdbSession();
  GdbSession(const GdbSession&) = delete;
  GdbSession& operator=(const GdbSession&) = delete;

  /// Runs a command and returns what gdb printed, once gdb takes commands again. Several lines are
  /// one command (`commands` ... `end`).
  std::string run(std::string_view command);
  /// Runs several commands; returns all they printed.
  std::string run_all(const std::vector<std::string>& commands);

  /// Sends a command without waiting; finish() waits for its end and returns what it printed.
  void start(std::string_view command);
  std::string finish();
  /// Ctrl-C at gdb's terminal.
  void interrupt();

  /// Waits until gdb has printed `text` since the last command was sent.
  bool wait_for_gdb(std::string_view text);
  /// Waits until server or program have printed `text` (their stdout and stderr together).
  bool wait_for_server(std::string_view text);
  /// All that server and program have printed so far.
  [[nodiscard]] const std::string& server_output();

  /// The value of an expression, as `output` prints it.
  std::string value(std::string_view expression);

  /// "target remote ..." for this session's server, started now where the wire needs that.
  std::string connect_command();

  /// Ends gdb by `quit` and waits for gdb and server; true when both ended by themselves.
  bool quit();
  /// Kills gdb as a crash would.
  void kill_gdb();
  /// True when the server has ended by itself (TCP and Unix: the process; pipe: its output).
  bool wait_for_server_end();
  /// Exit status of a server on TCP or Unix that has ended; -1 otherwise.
  [[nodiscard]] int server_exit_status();

  [[nodiscard]] bool alive() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

/// Path of a program built from test/inferiors.
[[nodiscard]] std::string inferior(std::string_view name);

/// argv of the server under test, up to its options.
[[nodiscard]] std::vector<std::string> server_command(Peer peer);

}  // namespace backtrail::test
