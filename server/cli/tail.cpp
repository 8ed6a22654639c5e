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

#include "arch/base/bytes.hpp"
#include "decoder/report/report_rows.hpp"
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
    TailReader::Item item{static_cast<pid_t>(load_le<std::uint32_t>(header)),
                          static_cast<pid_t>(load_le<std::uint32_t>(header + 4)),
                          load_le<std::uint64_t>(header + 16), std::nullopt,
                          static_cast<TailNews>(load_le<std::uint32_t>(header + 12))};
    if (count == 0) out.push_back(item);
    for (std::size_t i = 0; i < count; ++i, item.lost = 0) {
      item.record = read_record(header + kTailFrameBytes + i * kTailRecordBytes);
      out.push_back(item);
    }
    at += kTailFrameBytes + count * kTailRecordBytes;
  }
  bytes_.erase(bytes_.begin(), bytes_.begin() + static_cast<std::ptrdiff_t>(at));
  return out;
}

std::string tail_line(const TailReader::Item& item) {
  std::string out;
  if (item.lost != 0) out = fmt::format("{} {} records lost here: too slow\n", item.tid, item.lost);
  if (item.news == TailNews::kThreadEnded) out += fmt::format("{} ended\n", item.tid);
  if (!item.record) return out;
  const decoder::Record& record = *item.record;
  switch (record.kind) {
    case decoder::RecordKind::kBranch:
      return out + fmt::format("{} branch {} -> {}\n", item.tid, record.from, record.to);
    case decoder::RecordKind::kAsync:
      return out + fmt::format("{} signal {} -> {}\n", item.tid, record.from, record.to);
    case decoder::RecordKind::kGap:
      break;
  }
  if (record.reason == decoder::GapReason::kStart) {
    return out + fmt::format("{} start -> {}\n", item.tid, record.to);
  }
  return out + fmt::format("{} gap -> {}: {}\n", item.tid, record.to, decoder::gap_text(record));
}

std::string explain_tail_path(const std::string& path, int error) {
  struct stat status {};
  const char* why = std::strerror(error);
  if (::stat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    why = "that is no socket";
  } else if (error == ECONNREFUSED) {
    why = "nobody listens there; has the server ended?";
  }
  return fmt::format("cannot connect to {}: {}", path, why);
}

namespace {

/// A connection whose items are printed.
class Tail {
 public:
  Tail(const TailOptions& options, tracee::UniqueFd socket)
      : options_{options}, socket_{std::move(socket)} {}

  int run() {
    make_wish();
    std::array<std::uint8_t, 65536> buffer{};
    wait_for_greeting();
    for (;;) {
      const ssize_t count = ::read(socket_.get(), buffer.data(), buffer.size());
      if (count < 0 && errno == EINTR) continue;
      if (count <= 0) return ended_early();
      const auto items = reader_.add(std::span{buffer}.first(static_cast<std::size_t>(count)));
      if (reader_.broken()) return say("{} is no socket of serve --tail");
      const bool over =
          std::any_of(items.begin(), items.end(), [this](const auto& item) { return print(item); });
      // Nobody reads what we print, or there is no room for it.
      if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
        return say("cannot print what {} tells");
      if (over) return 0;
    }
  }

 private:
  /// So that others cost us nothing. Until the server knows we get everybody's.
  void make_wish() {
    std::string wish;
    if (options_.process) wish += fmt::format("pid {}\n", *options_.process);
    if (options_.thread) wish += fmt::format("tid {}\n", *options_.thread);
    if (!wish.empty()) (void)!::write(socket_.get(), wish.data(), wish.size());
  }
  /// Servers of other kinds may wait for us to speak.
  void wait_for_greeting() {
    constexpr int kLongMs = 10'000;
    pollfd waited{socket_.get(), POLLIN, 0};
    if (::poll(&waited, 1, kLongMs) == 0) {
      (void)say("{} does not answer; is it a socket of serve --tail? Still waiting");
    }
  }
  /// Whether it is the last one.
  bool print(const TailReader::Item& item) {
    if (item.news == TailNews::kServerEnded) return true;
    if (options_.thread && item.tid != 0 && *options_.thread != item.tid) return false;
    if (options_.process && *options_.process != item.pid) return false;
    const std::string line = tail_line(item);
    std::fwrite(line.data(), 1, line.size(), stdout);
    if (item.record && ++printed_ == options_.records) return true;
    if (item.news == TailNews::kThreadEnded) return options_.thread.has_value();
    return item.news == TailNews::kProcessEnded && options_.process.has_value();
  }
  int ended_early() {
    return say(reader_.greeted()
                   ? "{}: the server ended before it had told all; how much is missing is not known"
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
