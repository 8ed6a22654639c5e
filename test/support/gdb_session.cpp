// SPDX-License-Identifier: Apache-2.0
#include "test/support/gdb_session.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace backtrail::test {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

constexpr std::string_view kGdbserver = "gdbserver";

/// Settings without questions, paging, colours and user files.
constexpr std::string_view kGdbSettings[] = {
    "set confirm off",
    "set pagination off",
    "set width 0",
    "set height 0",
    "set style enabled off",
    "set debuginfod enabled off",
    "set auto-load no",
    "set breakpoint pending on",
    "set startup-with-shell on",
    "set sysroot /",
    "set tcp auto-retry off",
    "set print frame-info auto",
    "set cwd /",
    "set debug-file-directory /nonexistent",
};

std::string shell_word(std::string_view word) {
  std::string result = "'";
  for (const char c : word) {
    if (c == '\'') {
      result += "'\\''";
    } else {
      result += c;
    }
  }
  return result + "'";
}

std::string joined(const std::vector<std::string>& words) {
  std::string result;
  for (const std::string& word : words) {
    if (!result.empty()) result += ' ';
    result += shell_word(word);
  }
  return result;
}

fs::path make_folder() {
  std::string name = (fs::temp_directory_path() / "backtrail-test-XXXXXX").string();
  if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error{"mkdtemp: no temporary folder"};
  return name;
}

/// Returns the digits after the last `text` in `from`; empty if there are none.
std::string number_after(std::string_view from, std::string_view text) {
  const std::size_t at = from.rfind(text);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = from.substr(at + text.size());
  return std::string{rest.substr(0, rest.find_first_not_of("0123456789"))};
}

}  // namespace

std::string inferior(std::string_view name) {
  return fmt::format("{}/{}", BT_INFERIOR_DIR, name);
}

std::vector<std::string> server_command(Peer peer) {
  if (peer == Peer::kGdbserver) return {std::string{kGdbserver}};
  if (const char* replacement = std::getenv("BT_TEST_SERVER"); replacement != nullptr) {
    std::istringstream words{replacement};
    return {std::istream_iterator<std::string>{words}, {}};
  }
  return {BT_SERVER, "serve"};
}

struct GdbSession::Impl {
  explicit Impl(GdbOptions given) : options{std::move(given)}, folder{make_folder()} {
    deadline = deadline_in(options.time_limit);
    adopt_orphans();
    make_server_fifo();
    start_gdb();
  }

  void make_server_fifo() {
    const std::string path = (folder / "server.out").string();
    if (::mkfifo(path.c_str(), 0600) != 0) throw std::runtime_error{"mkfifo failed"};
    fifo = TextStream{::open(path.c_str(), O_RDWR | O_CLOEXEC)};
  }

  void start_gdb() {
    const fs::path settings = folder / "settings.gdb";
    std::ofstream file{settings};
    for (const std::string_view line : kGdbSettings) file << line << '\n';
    file << "set prompt\n";
    file.close();
    gdb = std::make_unique<Subprocess>(SpawnOptions{
        .arguments = {"gdb", "-nx", "-q", "-x", settings.string()},
        .environment = options.environment,
        .working_directory = options.working_directory.empty() ? "/" : options.working_directory,
    });
  }

  /// Starts a listening server and returns its address.
  std::string start_server() {
    std::vector<std::string> command = server_command(options.peer);
    command.insert(command.end(), options.server_options.begin(), options.server_options.end());
    std::string socket = (folder / "socket").string();
    const bool tcp = options.wire == Wire::kTcp;
    command.push_back(tcp ? "127.0.0.1:0" : "unix:" + socket);
    command.insert(command.end(), options.program.begin(), options.program.end());
    server = std::make_unique<Subprocess>(SpawnOptions{
        .arguments = std::move(command),
        .environment = options.environment,
        .working_directory = options.working_directory.empty() ? "/" : options.working_directory,
    });
    if (!server->output().find("Listening on ", 0, deadline)) {
      fail_session("the server does not listen");
      return {};
    }
    if (!tcp) return socket;
    const auto line = server->output().find("Listening on port ", 0, deadline);
    if (line) server->output().find("\n", *line, deadline);
    return "127.0.0.1:" + number_after(server->output().text(), "Listening on port ");
  }

  std::string connect_command() {
    const std::string target = options.extended ? "target extended-remote " : "target remote ";
    if (options.wire != Wire::kPipe) return target + start_server();
    std::vector<std::string> command = server_command(options.peer);
    command.insert(command.end(), options.server_options.begin(), options.server_options.end());
    command.emplace_back("-");
    command.insert(command.end(), options.program.begin(), options.program.end());
    return fmt::format("{}| exec {} 2>{}", target, joined(command),
                       shell_word((folder / "server.out").string()));
  }

  void send(std::string_view command) {
    ++commands_sent;
    command_begin = reply_begin;
    marker = fmt::format("@@done {}@@", commands_sent);
    transcript += fmt::format("(gdb) {}\n", command);
    if (dead) return;
    gdb->write(fmt::format("{}\necho {}\\n\n", command, marker));
  }

  std::string finish() {
    if (dead) return {};
    const auto at = gdb->output().find(marker, reply_begin, deadline);
    const std::string& text = gdb->output().text();
    if (!at) {
      transcript += text.substr(reply_begin);
      fail_session(gdb->output().at_end() ? "gdb ended" : "no answer from gdb in time");
      return {};
    }
    std::string reply = text.substr(reply_begin, *at - reply_begin);
    gdb->output().find("\n", *at, deadline);
    reply_begin = *at + marker.size() + 1;
    transcript += reply;
    if (!reply.empty() && reply.back() != '\n') transcript += '\n';
    return reply;
  }

  bool wait_for(TextStream& stream, std::string_view text, std::size_t from, const char* who) {
    if (dead) return false;
    if (stream.find(text, from, deadline)) return true;
    transcript += fmt::format("[waited for {:?} from {}]\n", std::string{text}, who);
    fail_session(fmt::format("{} did not print \"{}\"", who, text).c_str());
    return false;
  }

  TextStream& server_stream() { return server ? server->output() : fifo; }

  void fail_session(const char* why) {
    ADD_FAILURE() << why;
    dead = true;
    if (gdb) gdb->output().drain();
    server_stream().drain();
    kill_descendants();
  }

  GdbOptions options;
  fs::path folder;
  Deadline deadline;
  TextStream fifo;  ///< Output of a server connected by a pipe, and of its program.
  std::unique_ptr<Subprocess> gdb;
  std::unique_ptr<Subprocess> server;
  std::string transcript;
  std::string marker;
  std::size_t command_begin = 0;  ///< Where the reply to the last command begins.
  std::size_t reply_begin = 0;    ///< Where the next reply will begin.
  int commands_sent = 0;
  bool dead = false;
};

GdbSession::GdbSession(GdbOptions options) : impl_{std::make_unique<Impl>(std::move(options))} {
  run("echo");  // gdb's start-up output is no reply.
  const std::string& symbols = impl_->options.symbols.empty() && !impl_->options.program.empty()
                                   ? impl_->options.program.front()
                                   : impl_->options.symbols;
  if (!symbols.empty()) run("file " + symbols);
  for (const std::string& command : impl_->options.setup) run(command);
  if (impl_->options.connect) run(connect_command());
}

GdbSession::~GdbSession() {
  impl_->server_stream().drain();
  if (::testing::Test::HasFailure()) {
    fmt::print("--- gdb ---\n{}--- server and program ---\n{}\n---\n", impl_->transcript,
               impl_->server_stream().text());
  }
  kill_descendants();
  std::error_code ignored;
  fs::remove_all(impl_->folder, ignored);
}

std::string GdbSession::run(std::string_view command) {
  impl_->send(command);
  return impl_->finish();
}

std::string GdbSession::run_all(const std::vector<std::string>& commands) {
  std::string replies;
  for (const std::string& command : commands) replies += run(command);
  return replies;
}

void GdbSession::start(std::string_view command) {
  impl_->send(command);
}
std::string GdbSession::finish() {
  return impl_->finish();
}
void GdbSession::interrupt() {
  impl_->gdb->signal(SIGINT);
}

bool GdbSession::wait_for_gdb(std::string_view text) {
  return impl_->wait_for(impl_->gdb->output(), text, impl_->command_begin, "gdb");
}

bool GdbSession::wait_for_server(std::string_view text) {
  return impl_->wait_for(impl_->server_stream(), text, 0, "the server");
}

const std::string& GdbSession::server_output() {
  impl_->server_stream().drain();
  return impl_->server_stream().text();
}

std::string GdbSession::value(std::string_view expression) {
  return run(fmt::format("output {}", expression));
}

std::string GdbSession::connect_command() {
  return impl_->connect_command();
}

bool GdbSession::quit() {
  if (impl_->dead) return false;
  impl_->gdb->write("quit\n");
  impl_->gdb->close_input();
  const bool gdb_ended = impl_->gdb->wait(impl_->deadline).has_value();
  return gdb_ended && wait_for_server_end();
}

void GdbSession::kill_gdb() {
  impl_->gdb->signal(SIGKILL);
  impl_->gdb->wait(impl_->deadline);
}

bool GdbSession::wait_for_server_end() {
  if (impl_->server) return impl_->server->wait(impl_->deadline).has_value();
  while (std::chrono::steady_clock::now() < impl_->deadline) {
    impl_->fifo.drain();
    std::vector<pid_t> alive = live_descendants();
    std::erase(alive, impl_->gdb->pid());
    if (alive.empty()) return true;
    while (::waitpid(-1, nullptr, WNOHANG) > 0) {
    }
    ::usleep(2000);
  }
  return false;
}

int GdbSession::server_exit_status() {
  if (!impl_->server) return -1;
  const auto status = impl_->server->wait(deadline_in(0ms));
  return status && WIFEXITED(*status) ? WEXITSTATUS(*status) : -1;
}

bool GdbSession::alive() const {
  return !impl_->dead;
}

}  // namespace backtrail::test
