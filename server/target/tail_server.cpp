// SPDX-License-Identifier: Apache-2.0
#include "server/target/tail_server.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <optional>
#include <set>

#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <sys/un.h>
#include <unistd.h>

#include "arch/base/log.hpp"
#include "ptrace/os/disk_queue.hpp"

namespace backtrail::server {
namespace {

constexpr std::size_t kFrameRecords = 4096;
/// Number of the listening socket in the epoll instance.
constexpr std::uint64_t kDoor = ~std::uint64_t{0};
constexpr std::uint64_t kClock = kDoor - 1;
constexpr long kTickNs = 20'000'000;

bool address_of(const std::string& path, sockaddr_un& out) {
  out = {};
  out.sun_family = AF_UNIX;
  if (path.size() >= sizeof out.sun_path) return false;
  std::memcpy(out.sun_path, path.c_str(), path.size() + 1);
  return true;
}

}  // namespace

/// One thread's records for one client.
class TailServer::Listener final : public decoder::TraceConsumer {
 public:
  Listener(TailClient& client, ThreadId thread) : client_{client}, thread_{thread} {}

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
  /// Sends news, and the count of lost records if no record has followed to carry it.
  void tell(TailNews news) {
    if (lost_ == 0 && news == TailNews::kNone) return;
    if (client_.post(thread_, {}, lost_, news)) lost_ = 0;
  }

 private:
  TailClient& client_;
  ThreadId thread_;
  std::uint64_t lost_ = 0;
};

Result<std::unique_ptr<TailServer>> TailServer::listen(const TailListening& options) {
  if (!options.spool_folder.empty()) {
    // An unwritable folder must fail now, not when the first client is slow.
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
  // NOLINTNEXTLINE: the socket API takes addresses in this form.
  const int bound =
      ::bind(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address);
  const int error = errno;
  ::umask(mask);
  if (bound != 0) return fail(errno_error(error, "bind a tail socket"));
  if (::listen(socket.get(), 8) != 0) return fail_errno("listen on a tail socket");
  tracee::UniqueFd epoll{::epoll_create1(EPOLL_CLOEXEC)};
  tracee::UniqueFd clock{::timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK)};
  for (const auto& [fd, name] : {std::pair{socket.get(), kDoor}, {clock.get(), kClock}}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u64 = name;
    if (::epoll_ctl(epoll.get(), EPOLL_CTL_ADD, fd, &event) != 0) return fail_errno("epoll");
  }
  return std::unique_ptr<TailServer>{
      new TailServer{std::move(socket), std::move(epoll), std::move(clock), options}};
}

TailServer::TailServer(tracee::UniqueFd socket, tracee::UniqueFd epoll, tracee::UniqueFd clock,
                       TailListening options)
    : socket_{std::move(socket)},
      epoll_{std::move(epoll)},
      clock_{std::move(clock)},
      options_{std::move(options)} {}

TailServer::~TailServer() {
  ::unlink(options_.path.c_str());
}

bool TailServer::poll() {
  bool news = false;
  std::array<epoll_event, 16> ready{};
  const int count = ::epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = ready.at(static_cast<std::size_t>(i));
    if (event.data.u64 == kDoor) {
      news = let_in() || news;
      continue;
    }
    if (event.data.u64 == kClock) {
      std::uint64_t times = 0;
      due_ = ::read(clock_.get(), &times, sizeof times) > 0 || due_;
      continue;
    }
    Connection& connection = connections_.at(event.data.u64);
    connection.client->serve(event.events);
    tell_losses(connection);
  }
  set_clock();
  return news;
}

void TailServer::set_clock() {
  const bool wanted =
      std::any_of(connections_.begin(), connections_.end(),
                  [](const Connection& connection) { return !connection.client->gone(); });
  if (wanted == ticks_) return;
  ticks_ = wanted;
  itimerspec every{};
  if (ticks_) every.it_interval.tv_nsec = every.it_value.tv_nsec = kTickNs;
  ::timerfd_settime(clock_.get(), 0, &every, nullptr);
}

bool TailServer::let_in() {
  bool any = false;
  for (;;) {
    tracee::UniqueFd socket{
        ::accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK)};
    if (!socket) return any;
    std::optional<tracee::DiskQueue> spool;
    if (!options_.spool_folder.empty()) {
      auto queue = tracee::DiskQueue::create(options_.spool_folder, options_.spool_bytes);
      if (queue) {
        spool = std::move(*queue);
      } else {
        log::server().warn("tail: {}: {}", options_.spool_folder, queue.error().message());
      }
    }
    Connection& connection = connections_.emplace_back();
    connection.client = std::make_unique<TailClient>(std::move(socket), std::move(spool),
                                                     epoll_.get(), connections_.size() - 1);
    any = true;
  }
}

/// Sends loss counts to a client that has taken all that waited: its next record may be far off.
void TailServer::tell_losses(Connection& connection) {
  if (connection.client->gone() || !connection.client->has_all()) return;
  for (const auto& [key, listener] : connection.listeners) listener->tell(TailNews::kNone);
}

void TailServer::attach(ThreadId thread, decoder::TraceHub& hub) {
  for (Connection& connection : connections_) {
    auto& listener = connection.listeners[{thread, &hub}];
    if (!listener) listener = std::make_unique<Listener>(*connection.client, thread);
    hub.add(*listener);
  }
}

void TailServer::tell_ends(const std::function<bool(ThreadId)>& lives,
                           const std::function<bool(pid_t)>& runs) {
  for (Connection& connection : connections_) {
    std::set<pid_t> ended;
    std::erase_if(connection.listeners, [&](const auto& entry) {
      const ThreadId thread = entry.first.first;
      if (lives(thread)) return false;
      entry.second->tell(TailNews::kThreadEnded);
      if (!runs(thread.pid)) ended.insert(thread.pid);
      return true;
    });
    for (const pid_t pid : ended) connection.client->post({pid, 0}, {}, 0, TailNews::kProcessEnded);
  }
}

void TailServer::finish(int patience_ms) {
  for (Connection& connection : connections_) {
    TailClient& client = *connection.client;
    client.drain(patience_ms);
    if (!client.has_all()) continue;  // The client notices that the final frame is missing.
    tell_losses(connection);
    client.post({}, {}, 0, TailNews::kServerEnded);
    client.drain(patience_ms);
  }
}

}  // namespace backtrail::server
