// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server as a child process, and a connection to it.

#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>
#include <sys/wait.h>

#include "test/integration/rsp_client.hpp"
#include "test/support/subprocess.hpp"

namespace backtrail::test {

inline constexpr std::chrono::seconds kServerPatience{30};

/// The server as a child process, under gdbserver's name by default.
class Server {
 public:
  explicit Server(const std::vector<std::string>& arguments,
                  std::vector<std::string> name = {BT_GDBSERVER})
      : process_{{.arguments = joined(std::move(name), arguments),
                  .environment = test_environment(),
                  .working_directory = {}}} {}

  /// Waits for the text; returns the rest of its line.
  std::string line_after(std::string_view text) {
    const auto at = process_.output().find(text, 0, deadline_in(kServerPatience));
    if (!at) return "(none) " + process_.output().text();
    const std::size_t begin = *at + text.size();
    if (!process_.output().find("\n", begin, deadline_in(kServerPatience))) return "(no end)";
    const std::string& all = process_.output().text();
    return all.substr(begin, all.find('\n', begin) - begin);
  }
  std::uint16_t port() {
    return static_cast<std::uint16_t>(std::atoi(line_after("Listening on port ").c_str()));
  }
  pid_t program() { return std::atoi(line_after("pid = ").c_str()); }
  /// Returns the exit status; 1000 + a signal; -1 if the server does not end.
  int status() {
    const auto raw = process_.wait(deadline_in(kServerPatience));
    if (!raw) return -1;
    return WIFEXITED(*raw) ? WEXITSTATUS(*raw) : 1000 + WTERMSIG(*raw);
  }
  /// Waits for the end; returns all output.
  std::string output() {
    status();
    return process_.output().text();
  }
  Subprocess& process() { return process_; }

 private:
  static std::vector<std::string> joined(std::vector<std::string> words,
                                         const std::vector<std::string>& more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }

  Subprocess process_;
};

/// Connects without acknowledgements.
inline RspClient connect(Server& server) {
  RspClient client = RspClient::tcp(server.port());
  client.send_packet("QStartNoAckMode");
  EXPECT_EQ(client.read(7), "+$OK#9a");
  client.send("+");
  return client;
}

}  // namespace backtrail::test
