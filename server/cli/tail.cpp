// SPDX-License-Identifier: Apache-2.0
#include "server/cli/tail.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "ptrace/os/unique_fd.hpp"
#include "server/target/tail_server.hpp"

namespace backtrail::server {
namespace {

tracee::UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return errno = ENAMETOOLONG, tracee::UniqueFd{};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  tracee::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  // NOLINTNEXTLINE: the socket API takes addresses in this form.
  if (socket &&
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  return socket;
}

}  // namespace

std::string explain_tail_path(const std::string& path, int error) {
  struct stat status {};
  const char* why = std::strerror(error);
  if (::stat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    why = "it is not a socket";
  } else if (error == ECONNREFUSED) {
    why = "no server listens there; has it ended?";
  }
  return fmt::format("cannot connect to {}: {}", path, why);
}

namespace {

/// Prints what a connection sends.
class Tail {
 public:
  Tail(const TailOptions& options, tracee::UniqueFd socket)
      : options_{options}, socket_{std::move(socket)}, writer_{options.format} {}

  int run() {
    make_wish();
    std::array<std::uint8_t, 65536> buffer{};
    wait_for_greeting();
    for (;;) {
      const ssize_t count = ::read(socket_.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return ended_early();
      const auto items = reader_.add(std::span{buffer}.first(static_cast<std::size_t>(count)));
      if (reader_.broken()) return say("{} is not a socket of serve --tail");
      const bool over =
          std::any_of(items.begin(), items.end(), [this](const auto& item) { return print(item); });
      const std::string text = writer_.take();
      std::fwrite(text.data(), 1, text.size(), stdout);
      // The reader of the output is gone, or the disk is full.
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return say("cannot print the records of {}");
      if (over) return 0;
    }
  }

 private:
  /// Tells the server which records to send, so that others cost nothing. Until the server has read
  /// this, records of all threads arrive.
  void make_wish() {
    std::string wish;
    if (options_.process) wish += fmt::format("pid {}\n", *options_.process);
    if (options_.thread) wish += fmt::format("tid {}\n", *options_.thread);
    if (!wish.empty()) (void)!::write(socket_.get(), wish.data(), wish.size());
  }
  /// Warns if no greeting comes: another kind of server may be waiting for this side to speak.
  void wait_for_greeting() {
    constexpr int kLongMs = 10'000;
    pollfd waited{socket_.get(), POLLIN, 0};
    if (::poll(&waited, 1, kLongMs) == 0) {
      (void)say("{} does not answer; is it a socket of serve --tail? Still waiting");
    }
  }
  /// Prints an item. Returns true if it is the last one.
  bool print(const TailReader::Item& item) {
    if (item.news == TailNews::kServerEnded) {
      writer_.add(item);
      return true;
    }
    if (options_.thread && item.tid != 0 && *options_.thread != item.tid) return false;
    if (options_.process && *options_.process != item.pid) return false;
    writer_.add(item);
    if (item.record && ++printed_ == options_.records) return true;
    if (item.news == TailNews::kThreadEnded) return options_.thread.has_value();
    return item.news == TailNews::kProcessEnded && options_.process.has_value();
  }
  int ended_early() {
    return say(
        reader_.greeted()
            ? "{}: the server ended before it had sent everything; how much is missing is not known"
            : "{} closed the connection; is it a socket of serve --tail?");
  }
  int say(std::string_view words) {
    std::fflush(stdout);
    fmt::print(stderr, "backtrail: {}\n", fmt::format(fmt::runtime(words), options_.path));
    return 1;
  }

  const TailOptions& options_;
  tracee::UniqueFd socket_;
  TailReader reader_;
  TailWriter writer_;
  std::uint64_t printed_ = 0;
};

}  // namespace

int run_tail(const TailOptions& options) {
  tracee::UniqueFd socket = connect_to(options.path);
  if (!socket) {
    fmt::print(stderr, "backtrail: {}\n", explain_tail_path(options.path, errno));
    return 1;
  }
  return Tail{options, std::move(socket)}.run();
}

}  // namespace backtrail::server
