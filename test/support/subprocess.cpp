// SPDX-License-Identifier: Apache-2.0
#include "test/support/subprocess.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <map>
#include <system_error>
#include <utility>

namespace backtrail::test {
namespace {

using namespace std::chrono_literals;

[[noreturn]] void throw_errno(const char* what) {
  throw std::system_error{errno, std::generic_category(), what};
}

/// Returns milliseconds for poll(): at least 0, and at most until the deadline.
int poll_time(Deadline deadline) {
  const auto left =
      std::chrono::ceil<std::chrono::milliseconds>(deadline - std::chrono::steady_clock::now());
  return left > 0ms ? static_cast<int>(left.count()) : 0;
}

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& s : strings) result.push_back(const_cast<char*>(s.c_str()));
  result.push_back(nullptr);
  return result;
}

struct Pipe {
  int read = -1;
  int write = -1;
};

Pipe make_pipe() {
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw_errno("pipe2");
  return {ends[0], ends[1]};
}

/// Parent and state of a process, from /proc.
struct ProcessState {
  pid_t parent = 0;
  char state = '?';
};

std::map<pid_t, ProcessState> all_processes() {
  std::map<pid_t, ProcessState> result;
  DIR* proc = ::opendir("/proc");
  if (proc == nullptr) return result;
  while (const dirent* entry = ::readdir(proc)) {
    const pid_t pid =
        static_cast<pid_t>(std::strtol(static_cast<const char*>(entry->d_name), nullptr, 10));
    if (pid <= 0) continue;
    std::ifstream file{"/proc/" + std::to_string(pid) + "/stat"};
    std::string line;
    std::getline(file, line);
    const std::size_t name_end = line.rfind(')');
    if (name_end == std::string::npos || name_end + 4 > line.size()) continue;
    const std::string rest = line.substr(name_end + 4);
    result[pid] = {static_cast<pid_t>(std::strtol(rest.c_str(), nullptr, 10)), line[name_end + 2]};
  }
  ::closedir(proc);
  return result;
}

void reap_ended_children() {
  while (::waitpid(-1, nullptr, WNOHANG | __WALL) > 0) {
  }
}

}  // namespace

TextStream::TextStream(int fd) : fd_{fd} {
  if (::fcntl(fd_, F_SETFL, O_NONBLOCK) != 0) throw_errno("fcntl");
}

TextStream::~TextStream() {
  if (fd_ >= 0) ::close(fd_);
}

TextStream::TextStream(TextStream&& other) noexcept
    : text_{std::move(other.text_)}, fd_{std::exchange(other.fd_, -1)} {}

TextStream& TextStream::operator=(TextStream&& other) noexcept {
  std::swap(text_, other.text_);
  std::swap(fd_, other.fd_);
  return *this;
}

void TextStream::drain() {
  std::array<char, 65536> buffer{};
  while (fd_ >= 0) {
    const ssize_t got = ::read(fd_, buffer.data(), buffer.size());
    if (got > 0) {
      text_.append(buffer.data(), static_cast<std::size_t>(got));
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else if (got < 0 && errno == EAGAIN) {
      return;
    } else {
      ::close(fd_);
      fd_ = -1;
    }
  }
}

std::optional<std::size_t> TextStream::find(std::string_view needle, std::size_t from,
                                            Deadline deadline) {
  std::size_t searched = from;
  while (true) {
    drain();
    if (const std::size_t at = text_.find(needle, searched); at != std::string::npos) return at;
    // A needle may straddle old and new text.
    if (text_.size() > from + needle.size()) searched = text_.size() - needle.size();
    if (fd_ < 0 || std::chrono::steady_clock::now() >= deadline) return std::nullopt;
    pollfd wait{fd_, POLLIN, 0};
    ::poll(&wait, 1, poll_time(deadline));
  }
}

std::vector<std::string> test_environment() {
  const char* path = std::getenv("PATH");
  return {std::string{"PATH="} + (path != nullptr ? path : "/usr/bin:/bin"), "HOME=/", "LC_ALL=C",
          "TERM=dumb", "SHELL=/bin/sh"};
}

Subprocess::Subprocess(const SpawnOptions& options) {
  const Pipe in = make_pipe();
  const Pipe out = make_pipe();
  std::vector<char*> arguments = pointers(options.arguments);
  std::vector<char*> environment = pointers(options.environment);
  const char* directory = options.working_directory.c_str();
  ::signal(SIGPIPE, SIG_IGN);

  pid_ = ::fork();
  if (pid_ < 0) throw_errno("fork");
  if (pid_ == 0) {
    ::setpgid(0, 0);
    ::signal(SIGPIPE, SIG_DFL);
    if (*directory != '\0' && ::chdir(directory) != 0) ::_exit(126);
    ::dup2(in.read, STDIN_FILENO);
    ::dup2(out.write, STDOUT_FILENO);
    ::dup2(out.write, STDERR_FILENO);
    ::execvpe(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
  }
  ::setpgid(pid_, pid_);
  ::close(in.read);
  ::close(out.write);
  input_ = in.write;
  output_ = TextStream{out.read};
}

Subprocess::~Subprocess() {
  close_input();
  if (status_) return;
  ::kill(-pid_, SIGKILL);
  ::kill(pid_, SIGKILL);
  wait(deadline_in(5s));
}

void Subprocess::write(std::string_view text) {
  while (input_ >= 0 && !text.empty()) {
    const ssize_t written = ::write(input_, text.data(), text.size());
    if (written > 0) {
      text.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      close_input();
    }
  }
}

void Subprocess::close_input() {
  if (input_ >= 0) ::close(input_);
  input_ = -1;
}

void Subprocess::signal(int number) const {
  if (!status_) ::kill(pid_, number);
}

std::optional<int> Subprocess::wait(Deadline deadline) {
  while (!status_) {
    int status = 0;
    const pid_t got = ::waitpid(pid_, &status, WNOHANG);
    if (got == pid_) {
      status_ = status;
    } else if (got < 0 && errno != EINTR) {
      return std::nullopt;  // The child was reaped elsewhere.
    } else if (std::chrono::steady_clock::now() >= deadline) {
      return std::nullopt;
    } else {
      output_.drain();
      pollfd end{output_.fd(), POLLIN, 0};
      ::poll(&end, output_.fd() >= 0 ? 1 : 0, 5);
    }
  }
  output_.drain();
  return status_;
}

void adopt_orphans() {
  ::prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
}

std::vector<pid_t> live_descendants() {
  const std::map<pid_t, ProcessState> processes = all_processes();
  std::vector<pid_t> found;
  std::vector<pid_t> parents{::getpid()};
  while (!parents.empty()) {
    const pid_t parent = parents.back();
    parents.pop_back();
    for (const auto& [pid, process] : processes) {
      if (process.parent != parent) continue;
      parents.push_back(pid);
      if (process.state != 'Z' && process.state != 'X') found.push_back(pid);
    }
  }
  return found;
}

int kill_descendants() {
  const Deadline deadline = deadline_in(5s);
  int alive = 0;
  while (std::chrono::steady_clock::now() < deadline) {
    reap_ended_children();
    const std::vector<pid_t> left = live_descendants();
    if (left.empty()) break;
    alive = std::max(alive, static_cast<int>(left.size()));
    for (const pid_t pid : left) ::kill(pid, SIGKILL);
    ::poll(nullptr, 0, 5);
  }
  return alive;
}

}  // namespace backtrail::test
