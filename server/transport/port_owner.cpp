// SPDX-License-Identifier: Apache-2.0
#include "server/transport/port_owner.hpp"

#include <charconv>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fmt/format.h>

namespace backtrail::server {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file{path};
  std::ostringstream text;
  text << file.rdbuf();
  return std::move(text).str();
}

/// Returns word number `wanted` (from 0) of a line.
std::string_view column(std::string_view line, unsigned wanted) {
  for (unsigned i = 0;; ++i) {
    const std::size_t begin = line.find_first_not_of(' ');
    if (begin == std::string_view::npos) return {};
    line.remove_prefix(begin);
    const std::size_t end = line.find(' ');
    if (i == wanted) return line.substr(0, end);
    if (end == std::string_view::npos) return {};
    line.remove_prefix(end);
  }
}

template <typename Number>
std::optional<Number> parse(std::string_view text, int base) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value, base);
  if (error != std::errc{} || end != text.data() + text.size()) return std::nullopt;
  return value;
}

bool has_descriptor(const fs::path& process, const std::string& link) {
  std::error_code error;
  for (fs::directory_iterator it{process / "fd", error}, end; !error && it != end;
       it.increment(error)) {
    std::error_code unreadable;
    if (fs::read_symlink(it->path(), unreadable).native() == link) return true;
  }
  return false;
}

std::optional<std::string> holder_of(std::uint64_t inode) {
  const std::string link = fmt::format("socket:[{}]", inode);
  std::error_code error;
  for (fs::directory_iterator it{"/proc", error}, end; !error && it != end; it.increment(error)) {
    const std::string name = it->path().filename();
    if (!parse<unsigned>(name, 10) || !has_descriptor(it->path(), link)) continue;
    std::string command = read_text(it->path() / "comm");
    if (!command.empty() && command.back() == '\n') command.pop_back();
    return fmt::format("process {} ({})", name, command);
  }
  return std::nullopt;
}

}  // namespace

std::optional<std::uint64_t> listening_inode(std::string_view proc_net_tcp, std::uint16_t port) {
  // Columns: number, local address:port, remote address:port, state (0A = listening), ..., inode.
  // Source: Linux Documentation/networking/proc_net_tcp.rst.
  constexpr unsigned kLocal = 1;
  constexpr unsigned kState = 3;
  constexpr unsigned kInode = 9;
  while (!proc_net_tcp.empty()) {
    const std::size_t end = proc_net_tcp.find('\n');
    const std::string_view line = proc_net_tcp.substr(0, end);
    proc_net_tcp = end == std::string_view::npos ? "" : proc_net_tcp.substr(end + 1);
    const std::string_view local = column(line, kLocal);
    const std::size_t colon = local.rfind(':');
    if (colon == std::string_view::npos || column(line, kState) != "0A") continue;
    if (parse<std::uint16_t>(local.substr(colon + 1), 16) != port) continue;
    if (const auto inode = parse<std::uint64_t>(column(line, kInode), 10)) return inode;
  }
  return std::nullopt;
}

std::optional<std::string> find_port_owner(std::uint16_t port) {
  for (const char* table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    if (const auto inode = listening_inode(read_text(table), port)) {
      if (auto owner = holder_of(*inode)) return owner;
    }
  }
  return std::nullopt;
}

}  // namespace backtrail::server
