// SPDX-License-Identifier: Apache-2.0
// The table of internet sockets. Source: /proc/net/{tcp,tcp6,udp,udp6}, proc(5).
#include <array>
#include <charconv>
#include <optional>

#include <arpa/inet.h>

#include "ptrace/tracee/osdata_detail.hpp"

namespace backtrail::tracee {
namespace {

std::optional<std::uint32_t> hex_number(std::string_view text) {
  std::uint32_t value = 0;
  const char* end = text.data() + text.size();
  const auto result = std::from_chars(text.data(), end, value, 16);
  if (result.ec != std::errc{} || result.ptr != end) return std::nullopt;
  return value;
}

std::string tcp_state(std::string_view hex) {
  // Source: <netinet/tcp.h>, TCP_ESTABLISHED and following.
  constexpr std::array<std::string_view, 13> kNames{
      "",      "ESTABLISHED", "SYN_SENT", "SYN_RECV", "FIN_WAIT1", "FIN_WAIT2",   "TIME_WAIT",
      "CLOSE", "CLOSE_WAIT",  "LAST_ACK", "LISTEN",   "CLOSING",   "NEW_SYN_RECV"};
  const auto state = hex_number(hex);
  return state && *state < kNames.size() ? std::string{kNames[*state]} : std::string{hex};
}

struct Endpoint {
  std::string address;
  std::string port;
};
std::optional<Endpoint> endpoint(std::string_view word) {
  const std::size_t colon = word.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto port = hex_number(word.substr(colon + 1));
  std::string address = internet_address(word.substr(0, colon));
  if (!port || address.empty()) return std::nullopt;
  return Endpoint{std::move(address), std::to_string(*port)};
}

void read_table(const ProcFs& proc, const std::string& name, std::vector<OsDataRow>& out) {
  const auto text = proc.read("net/" + name);
  if (!text) return;
  const bool tcp = name.starts_with("tcp");
  const bool v6 = name.ends_with('6');
  for_each_text_line(*text, [&](std::string_view line) {
    // sl, local, remote, state, queues, timer, retransmissions, uid
    constexpr std::size_t kUid = 7;
    const auto words = split_words(line);
    if (words.size() <= kUid) return;
    const auto local = endpoint(words[1]);
    const auto remote = endpoint(words[2]);
    uid_t uid = 0;
    const std::string_view user = words[kUid];
    const auto parsed = std::from_chars(user.data(), user.data() + user.size(), uid);
    if (!local || !remote || parsed.ec != std::errc{}) return;  // for example the heading
    out.push_back({{"local address", local->address},
                   {"local port", local->port},
                   {"remote address", remote->address},
                   {"remote port", remote->port},
                   {"state", tcp ? tcp_state(words[3]) : std::string{}},
                   {"user", user_name(uid)},
                   {"family", v6 ? "INET6" : "INET"},
                   {"protocol", tcp ? "STREAM" : "DGRAM"}});
  });
}

}  // namespace

std::vector<std::string_view> split_words(std::string_view line) {
  std::vector<std::string_view> out;
  while (true) {
    const std::size_t begin = line.find_first_not_of(" \t");
    if (begin == std::string_view::npos) return out;
    line.remove_prefix(begin);
    const std::size_t end = std::min(line.find_first_of(" \t"), line.size());
    out.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
}

std::string internet_address(std::string_view hex) {
  // The address is groups of 32 bits, each in the host's byte order.
  constexpr std::size_t kGroup = 8;
  if (hex.size() != kGroup && hex.size() != 4 * kGroup) return {};
  std::array<std::uint32_t, 4> words{};
  for (std::size_t i = 0; i * kGroup < hex.size(); ++i) {
    const auto word = hex_number(hex.substr(i * kGroup, kGroup));
    if (!word) return {};
    words[i] = *word;
  }
  std::array<char, INET6_ADDRSTRLEN> text{};
  const int family = hex.size() == kGroup ? AF_INET : AF_INET6;
  if (::inet_ntop(family, words.data(), text.data(), text.size()) == nullptr) return {};
  return text.data();
}

std::vector<OsDataRow> sockets(const ProcFs& proc) {
  std::vector<OsDataRow> out;
  for (const char* name : {"tcp", "tcp6", "udp", "udp6"}) read_table(proc, name, out);
  return out;
}

}  // namespace backtrail::tracee
