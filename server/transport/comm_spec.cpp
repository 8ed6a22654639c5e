// SPDX-License-Identifier: Apache-2.0
#include "server/transport/comm_spec.hpp"

#include <algorithm>
#include <charconv>
#include <optional>

#include <arpa/inet.h>
#include <sys/un.h>

#include <fmt/format.h>

namespace backtrail::server {
namespace {

constexpr std::string_view kLoopback = "127.0.0.1";
constexpr std::string_view kUnixPrefix = "unix:";
constexpr std::size_t kMaxUnixPath = sizeof(sockaddr_un::sun_path) - 1;

bool all_digits(std::string_view text) {
  return !text.empty() &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

Explained<CommSpec> tcp(std::string_view whole, std::string_view host, std::string_view port) {
  if (port.empty()) {
    return explain(fmt::format("'{}' has no port: write {}:PORT, where port 0 takes any free one",
                               whole, host));
  }
  if (!all_digits(port)) {
    return explain(fmt::format("'{}' in '{}' is not a port number (0 to 65535)", port, whole));
  }
  unsigned long number = 0;
  const auto [end, error] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (error != std::errc{} || end != port.data() + port.size() || number > 65535) {
    return explain(fmt::format("port {} in '{}' is too large: ports end at 65535", port, whole));
  }
  return CommSpec{CommKind::kTcp,
                  std::string{host.empty() ? kLoopback : host},
                  static_cast<std::uint16_t>(number),
                  {}};
}

Explained<CommSpec> bracketed(std::string_view text) {
  const std::size_t close = text.find(']');
  if (close == std::string_view::npos) {
    return explain(fmt::format("'{}' lacks a ']': write [ADDRESS]:PORT", text));
  }
  const std::string_view rest = text.substr(close + 1);
  if (close == 1 || rest.empty() || rest.front() != ':') {
    return explain(fmt::format("'{}' is not of the form [ADDRESS]:PORT", text));
  }
  return tcp(text, text.substr(1, close - 1), rest.substr(1));
}

Explained<CommSpec> unix_socket(std::string_view text) {
  const std::string_view path = text.substr(kUnixPrefix.size());
  if (path.empty()) return explain("'unix:' has no path: write unix:PATH");
  if (path.size() > kMaxUnixPath) {
    return explain(fmt::format(
        "the socket path is {} bytes long, and Linux takes at most {}: use a shorter one, "
        "for example below /tmp or relative to the current directory",
        path.size(), kMaxUnixPath));
  }
  return CommSpec{CommKind::kUnix, {}, 0, std::string{path}};
}

}  // namespace

Explained<CommSpec> parse_comm(std::string_view text) {
  if (text.empty()) {
    return explain("no place to listen on: give HOST:PORT, :PORT, unix:PATH or - (stdio)");
  }
  if (text.find('\0') != std::string_view::npos) return explain("COMM contains a zero byte");
  if (text == "-" || text == "stdio") return CommSpec{CommKind::kStdio, {}, 0, {}};
  if (text.substr(0, kUnixPrefix.size()) == kUnixPrefix) return unix_socket(text);
  if (text.front() == '[') return bracketed(text);
  const std::size_t colon = text.find(':');
  if (text.find('/') != std::string_view::npos || colon == std::string_view::npos) {
    if (all_digits(text)) {
      return explain(fmt::format(
          "'{0}' is not a place to listen on: write :{0} for connections from this machine, or "
          "0.0.0.0:{0} for any",
          text));
    }
    return CommSpec{CommKind::kDevice, {}, 0, std::string{text}};
  }
  if (const std::size_t last = text.rfind(':'); colon != last) {
    // Like gdbserver, take an IPv6 address without brackets up to the last colon.
    const std::string host{text.substr(0, last)};
    in6_addr address{};
    if (::inet_pton(AF_INET6, host.c_str(), &address) == 1) {
      return tcp(text, host, text.substr(last + 1));
    }
    return explain(
        fmt::format("cannot resolve name: '{}' has more than one colon: write an IPv6 "
                    "address in brackets, as in [::1]:1234",
                    text));
  }
  return tcp(text, text.substr(0, colon), text.substr(colon + 1));
}

}  // namespace backtrail::server
