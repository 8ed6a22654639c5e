// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// A minimal client: sends and receives bytes, with a deadline.

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "ptrace/os/unique_fd.hpp"
#include "server/rsp/frame_writer.hpp"

namespace backtrail::test {

class RspClient {
 public:
  RspClient() = default;
  explicit RspClient(tracee::UniqueFd socket) : socket_{std::move(socket)} {}

  /// @param room  Bytes of the receive buffer; 0 = what the kernel finds right.
  static RspClient tcp(std::uint16_t port, int room = 0) {
    tracee::UniqueFd fd{::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    if (room > 0) ::setsockopt(fd.get(), SOL_SOCKET, SO_RCVBUF, &room, sizeof room);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
    return RspClient{std::move(fd)};
  }
  static RspClient unix_socket(const std::string& path) {
    tracee::UniqueFd fd{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) return {};
    return RspClient{std::move(fd)};
  }

  [[nodiscard]] bool connected() const { return socket_.valid(); }
  void close() { socket_.reset(); }
  /// Sends nothing more, but goes on to read.
  void end_input() { ::shutdown(socket_.get(), SHUT_WR); }
  /// Closes with a reset instead of an orderly end.
  void reset() {
    const linger now{1, 0};
    ::setsockopt(socket_.get(), SOL_SOCKET, SO_LINGER, &now, sizeof now);
    socket_.reset();
  }

  /// Returns false if the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t count = ::send(socket_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }
  bool send_packet(std::string_view payload) { return send(server::rsp::frame_packet(payload)); }

  /// Reads exactly `count` bytes; fewer if the server closes or sends nothing for 20 seconds.
  std::string read(std::size_t count) {
    std::string bytes;
    while (bytes.size() < count) {
      pollfd poll_fd{socket_.get(), POLLIN, 0};
      if (::poll(&poll_fd, 1, 20'000) <= 0) break;
      char buffer[65536];
      const ssize_t got =
          ::recv(socket_.get(), buffer, std::min(sizeof buffer, count - bytes.size()), 0);
      if (got <= 0) break;
      bytes.append(buffer, static_cast<std::size_t>(got));
    }
    return bytes;
  }
  /// Reads a whole packet or notification: "$OK", "%Stop:..."; shorter if the server closes or
  /// sends nothing for 20 seconds. Repeats are not expanded.
  std::string read_frame() {
    std::string frame;
    for (std::string next = read(1); next != "#"; next = read(1)) {
      if (next.empty()) return frame;
      frame += next;
    }
    read(2);
    return frame;
  }
  /// Sends a packet and returns the next frame, an answer or a notification.
  std::string ask(std::string_view payload) {
    send_packet(payload);
    return read_frame();
  }
  /// Reads until the server closes.
  std::string read_to_end() { return read(std::size_t{1} << 30); }

 private:
  tracee::UniqueFd socket_;
};

}  // namespace backtrail::test
