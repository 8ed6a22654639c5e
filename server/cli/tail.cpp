#include "server/cli/tail.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "arch/base/bytes.hpp"
#include "ptrace/os/unique_fd.hpp"
#include "server/target/tail_server.hpp"

namespace backtrail::server {
namespace {

decoder::Record read_record(const std::uint8_t* at) {
  return {TraceeAddr{load_le<std::uint64_t>(at)},   TraceeAddr{load_le<std::uint64_t>(at + 8)},
          static_cast<decoder::RecordKind>(at[16]), static_cast<decoder::GapReason>(at[17]),
          static_cast<decoder::LossBound>(at[18]),  load_le<std::uint32_t>(at + 20)};
}

tracee::UniqueFd connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) return errno = ENAMETOOLONG, tracee::UniqueFd{};
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  tracee::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)};
  // NOLINTNEXTLINE: the form in which sockets have their addresses.
  if (socket &&
      ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0)
    return {};
  return socket;
}

}  // namespace

std::vector<TailReader::Item> TailReader::add(std::span<const std::uint8_t> bytes) {
  std::vector<Item> out;
  if (broken_) return out;
  bytes_.insert(bytes_.end(), bytes.begin(), bytes.end());
  std::size_t at = 0;
  if (!greeted_) {
    if (bytes_.size() < kTailGreeting.size()) return out;
    if (!std::equal(kTailGreeting.begin(), kTailGreeting.end(), bytes_.begin())) {
      broken_ = true;
      return out;
    }
    greeted_ = true;
    at = kTailGreeting.size();
  }
  while (bytes_.size() - at >= kTailFrameBytes) {
    const std::uint8_t* header = bytes_.data() + at;
    const std::size_t count = load_le<std::uint32_t>(header + 8);
    if (bytes_.size() - at - kTailFrameBytes < count * kTailRecordBytes) break;
    std::uint64_t lost = load_le<std::uint64_t>(header + 16);
    for (std::size_t i = 0; i < count; ++i, lost = 0) {
      out.push_back({static_cast<pid_t>(load_le<std::uint32_t>(header)),
                     static_cast<pid_t>(load_le<std::uint32_t>(header + 4)), lost,
                     read_record(header + kTailFrameBytes + i * kTailRecordBytes)});
    }
    at += kTailFrameBytes + count * kTailRecordBytes;
  }
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

std::string tail_line(const TailReader::Item& item) {
  const decoder::Record& record = item.record;
  std::string out;
  if (item.lost != 0) out = fmt::format("{} {} records lost here: too slow\n", item.tid, item.lost);
  switch (record.kind) {
    case decoder::RecordKind::kBranch:
      return out + fmt::format("{} branch {} -> {}\n", item.tid, record.from, record.to);
    case decoder::RecordKind::kAsync:
      return out + fmt::format("{} signal {} -> {}\n", item.tid, record.from, record.to);
    case decoder::RecordKind::kGap:
      break;
  }
  const bool start = record.reason == decoder::GapReason::kStart;
  return out + fmt::format("{} {} -> {}\n", item.tid, start ? "start" : "gap", record.to);
}

int run_tail(const TailOptions& options) {
  const tracee::UniqueFd socket = connect_to(options.path);
  if (!socket) {
    fmt::print(stderr, "backtrail: cannot connect to {}: {}\n", options.path, std::strerror(errno));
    return 1;
  }
  // So that others cost us nothing. Until the server knows we get everybody's.
  std::string wish;
  if (options.process) wish += fmt::format("pid {}\n", *options.process);
  if (options.thread) wish += fmt::format("tid {}\n", *options.thread);
  if (!wish.empty()) (void)!::write(socket.get(), wish.data(), wish.size());
  TailReader reader;
  std::uint64_t printed = 0;
  std::array<std::uint8_t, 65536> buffer{};
  for (;;) {
    const ssize_t count = ::read(socket.get(), buffer.data(), buffer.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    for (const auto& item : reader.add(std::span{buffer}.first(static_cast<std::size_t>(count)))) {
      if (options.thread && *options.thread != item.tid) continue;
      if (options.process && *options.process != item.pid) continue;
      const std::string line = tail_line(item);
      std::fwrite(line.data(), 1, line.size(), stdout);
      if (++printed == options.records) return 0;
    }
    std::fflush(stdout);
    if (reader.broken()) {
      fmt::print(stderr, "backtrail: {} is no socket of serve --tail\n", options.path);
      return 1;
    }
  }
  return 0;
}

}  // namespace backtrail::server
