// SPDX-License-Identifier: Apache-2.0
#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <termios.h>

#include <fmt/format.h>
#include <boost/asio/post.hpp>

#include "server/session/notices.hpp"
#include "server/transport/listener.hpp"

namespace backtrail::server {
namespace {

namespace asio = boost::asio;
using tracee::UniqueFd;

std::string errno_text() {
  return std::generic_category().message(errno);
}

UniqueFd duplicate(int fd) {
  return UniqueFd{::fcntl(fd, F_DUPFD_CLOEXEC, 3)};
}

Explained<ClientChannel> stdio_channel() {
  ClientChannel channel;
  channel.input = duplicate(0);
  if (!channel.input) return explain("cannot use standard input: " + errno_text());
  channel.output = duplicate(1);
  if (!channel.output) return explain("cannot use standard output: " + errno_text());
  return channel;
}

/// Makes a terminal line transparent: no echo, no line editing, no signals.
void make_raw(int fd) {
  termios settings{};
  if (::tcgetattr(fd, &settings) != 0) return;
  ::cfmakeraw(&settings);
  settings.c_cflag |= static_cast<tcflag_t>(CLOCAL | CREAD);
  settings.c_cc[VMIN] = 1;
  settings.c_cc[VTIME] = 0;
  ::tcsetattr(fd, TCSANOW, &settings);
}

/// Listener for the one client on standard input and output.
class StdioListener final : public Listener {
 public:
  explicit StdioListener(asio::io_context& io) : io_{io} {}
  void announce() const override {}
  void accept(AcceptHandler handler) override {
    notices::debugging_using("stdio");
    asio::post(io_, [handler = std::move(handler)] { handler(stdio_channel()); });
  }
  void close() override {}
  [[nodiscard]] bool ends_with_client() const override { return true; }
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] std::uint16_t port() const override { return 0; }

 private:
  asio::io_context& io_;
};

/// Listener for the client on a serial line.
class DeviceListener final : public Listener {
 public:
  DeviceListener(asio::io_context& io, UniqueFd device, std::string path)
      : io_{io}, device_{std::move(device)}, path_{std::move(path)} {}
  void announce() const override {}
  void accept(AcceptHandler handler) override {
    notices::debugging_using(path_);
    asio::post(io_, [this, handler = std::move(handler)] {
      ClientChannel channel;
      channel.input = duplicate(device_.get());
      if (!channel.input) {
        handler(explain(fmt::format("cannot use {}: {}", path_, errno_text())));
        return;
      }
      handler(std::move(channel));
    });
  }
  void close() override {}
  /// A serial line reports the end of a client only as a hang-up.
  [[nodiscard]] bool ends_with_client() const override { return true; }
  [[nodiscard]] int fd() const override { return -1; }
  [[nodiscard]] std::uint16_t port() const override { return 0; }

 private:
  asio::io_context& io_;
  UniqueFd device_;
  std::string path_;
};

}  // namespace

Explained<std::unique_ptr<Listener>> open_stdio_listener(asio::io_context& io) {
  return std::make_unique<StdioListener>(io);
}

Explained<std::unique_ptr<Listener>> open_device_listener(asio::io_context& io,
                                                          const CommSpec& comm) {
  const auto failure = [&](const std::string& why) {
    return explain(fmt::format(
        "cannot use '{}': {}; COMM is HOST:PORT, :PORT, unix:PATH, - (stdio) or a device's path",
        comm.path, why));
  };
  struct stat status {};
  if (::stat(comm.path.c_str(), &status) != 0) return failure(errno_text());
  if (!S_ISCHR(status.st_mode)) return failure("it is not a character device");
  UniqueFd device{::open(comm.path.c_str(), O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC)};
  if (!device) return failure(errno_text());
  make_raw(device.get());
  return std::make_unique<DeviceListener>(io, std::move(device), comm.path);
}

}  // namespace backtrail::server
