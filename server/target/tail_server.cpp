#include "server/target/tail_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <map>
#include <optional>

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "arch/base/bytes.hpp"
#include "arch/base/log.hpp"
#include "ptrace/os/disk_queue.hpp"

namespace backtrail::server {
namespace {

/// What waits for a slow client at most.
constexpr std::size_t kMostWaiting = std::size_t{16} << 20U;
constexpr std::size_t kFrameRecords = 4096;

void append_record(const decoder::Record& record, std::vector<std::uint8_t>& out) {
  std::array<std::uint8_t, kTailRecordBytes> bytes{};
  store_le(bytes.data(), record.from.value());
  store_le(bytes.data() + 8, record.to.value());
  bytes[16] = static_cast<std::uint8_t>(record.kind);
  bytes[17] = static_cast<std::uint8_t>(record.reason);
  bytes[18] = static_cast<std::uint8_t>(record.bound);
  store_le(bytes.data() + 20, record.payload);
  out.insert(out.end(), bytes.begin(), bytes.end());
}

void append_frame(ThreadId thread, std::span<const decoder::Record> records, std::uint64_t lost,
                  std::vector<std::uint8_t>& out) {
  std::array<std::uint8_t, kTailFrameBytes> header{};
  store_le(header.data(), static_cast<std::uint32_t>(thread.pid));
  store_le(header.data() + 4, static_cast<std::uint32_t>(thread.tid));
  store_le(header.data() + 8, static_cast<std::uint32_t>(records.size()));
  store_le(header.data() + 16, lost);
  out.insert(out.end(), header.begin(), header.end());
  for (const decoder::Record& record : records) append_record(record, out);
}

bool address_of(const std::string& path, sockaddr_un& out) {
  out = {};
  out.sun_family = AF_UNIX;
  if (path.size() >= sizeof out.sun_path) return false;
  std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
  return true;
}

}  // namespace

/// One connection: bytes that wait to be sent.
class TailServer::Client {
 public:
  Client(tracee::UniqueFd socket, std::optional<tracee::DiskQueue> spool)
      : socket_{std::move(socket)}, spool_{std::move(spool)} {
    waiting_.assign(kTailGreeting.begin(), kTailGreeting.end());
    send();
  }

  /// Whether the frame found room.
  bool post(ThreadId thread, std::span<const decoder::Record> records, std::uint64_t lost) {
    if (!socket_ || !wants(thread)) return true;  // Nobody misses them.
    const std::size_t size = kTailFrameBytes + records.size() * kTailRecordBytes;
    const bool fits = waiting_.size() + size <= kMostWaiting && !spooling();
    if (!fits && !spool_) {
      send();
      return false;
    }
    if (fits) {
      append_frame(thread, records, lost, waiting_);
    } else {
      frame_.clear();
      append_frame(thread, records, lost, frame_);
      if (!spool_->push(frame_)) return false;
    }
    send();
    return true;
  }

  void send() {
    do {
      send_waiting();
    } while (socket_ && waiting_.empty() && take_from_spool());
  }

  /// What the client wishes may come at any time.
  void read_wish() {
    constexpr std::size_t kLongest = 32;
    std::array<char, kLongest> text{};
    if (!socket_ || wish_.size() > kLongest) return;
    const ssize_t count = ::recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);
    if (count <= 0) return;
    wish_.append(text.data(), static_cast<std::size_t>(count));
    for (std::size_t end = wish_.find('\n'); end != std::string::npos; end = wish_.find('\n')) {
      grant(std::string_view{wish_}.substr(0, end));
      wish_.erase(0, end + 1);
    }
  }

  std::map<std::pair<ThreadId, decoder::TraceHub*>, std::unique_ptr<Listener>> listeners;

 private:
  void grant(std::string_view wish) {
    pid_t number = 0;
    constexpr std::size_t kWord = 4;
    const auto digits = wish.substr(std::min(kWord, wish.size()));
    const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
    if (parsed.ec != std::errc{}) return;
    if (wish.starts_with("pid ")) pid_ = number;
    if (wish.starts_with("tid ")) tid_ = number;
  }
  [[nodiscard]] bool wants(ThreadId thread) const {
    return (!pid_ || *pid_ == thread.pid) && (!tid_ || *tid_ == thread.tid);
  }
  [[nodiscard]] bool spooling() const { return spool_ && spool_->waiting() != 0; }

  bool take_from_spool() {
    constexpr std::size_t kPiece = std::size_t{1} << 20U;
    if (!spooling()) return false;
    waiting_.resize(kPiece);
    const auto count = spool_->pop(waiting_);
    waiting_.resize(count.value_or(0));
    if (!count) socket_.reset();  // What follows would make no sense.
    return !waiting_.empty();
  }

  void send_waiting() {
    std::size_t sent = 0;
    while (socket_ && sent < waiting_.size()) {
      const ssize_t count = ::send(socket_.get(), waiting_.data() + sent, waiting_.size() - sent,
                                   MSG_DONTWAIT | MSG_NOSIGNAL);
      if (count > 0) {
        sent += static_cast<std::size_t>(count);
      } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
        break;
      } else if (errno != EINTR) {
        socket_.reset();
      }
    }
    waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent));
  }

  tracee::UniqueFd socket_;
  std::optional<tracee::DiskQueue> spool_;
  std::vector<std::uint8_t> waiting_;  ///< Older than all that is spooled.
  std::vector<std::uint8_t> frame_;
  std::string wish_;
  std::optional<pid_t> pid_;
  std::optional<pid_t> tid_;
};

/// One thread, as one client sees it.
class TailServer::Listener final : public decoder::TraceConsumer {
 public:
  Listener(Client& client, ThreadId thread) : client_{client}, thread_{thread} {}

  void consume(std::span<const decoder::Record> records) override {
    while (!records.empty()) {
      const auto part = records.first(std::min(kFrameRecords, records.size()));
      records = records.subspan(part.size());
      if (client_.post(thread_, part, lost_)) {
        lost_ = 0;
      } else {
        lost_ += part.size();
      }
    }
  }

 private:
  Client& client_;
  ThreadId thread_;
  std::uint64_t lost_ = 0;
};

Result<std::unique_ptr<TailServer>> TailServer::listen(const TailListening& options) {
  if (!options.spool_folder.empty()) {
    // Whether it can be written to is said now, not when a client falls behind.
    BT_CHECKED(tracee::DiskQueue::create(options.spool_folder, options.spool_bytes));
  }
  const std::string& path = options.path;
  sockaddr_un address{};
  if (!address_of(path, address)) return fail(errno_error(ENAMETOOLONG, "tail socket"));
  tracee::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)};
  if (!socket) return fail_errno("socket");
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && S_ISSOCK(status.st_mode)) ::unlink(path.c_str());
  const mode_t mask = ::umask(0177);
  // NOLINTNEXTLINE: the form in which sockets have their addresses.
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(mask);
  if (bound != 0) return fail(errno_error(error, "bind a tail socket"));
  if (::listen(socket.get(), 8) != 0) return fail_errno("listen on a tail socket");
  return std::unique_ptr<TailServer>{new TailServer{std::move(socket), options}};
}

TailServer::TailServer(tracee::UniqueFd socket, TailListening options)
    : socket_{std::move(socket)}, options_{std::move(options)} {}

TailServer::~TailServer() {
  ::unlink(options_.path.c_str());
}

bool TailServer::poll() {
  bool news = false;
  for (;;) {
    tracee::UniqueFd client{
        ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!client) break;
    std::optional<tracee::DiskQueue> spool;
    if (!options_.spool_folder.empty()) {
      auto queue = tracee::DiskQueue::create(options_.spool_folder, options_.spool_bytes);
      if (queue) {
        spool = std::move(*queue);
      } else {
        log::server().warn("tail: {}: {}", options_.spool_folder, queue.error().message());
      }
    }
    clients_.push_back(std::make_unique<Client>(std::move(client), std::move(spool)));
    news = true;
  }
  for (const auto& client : clients_) {
    client->read_wish();
    client->send();
  }
  return news;
}

void TailServer::attach(ThreadId thread, decoder::TraceHub& hub) {
  for (const auto& client : clients_) {
    auto& listener = client->listeners[{thread, &hub}];
    if (!listener) listener = std::make_unique<Listener>(*client, thread);
    hub.add(*listener);
  }
}

}  // namespace backtrail::server
