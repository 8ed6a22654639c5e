// SPDX-License-Identifier: Apache-2.0
#include "server/target/tail_client.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>

#include "arch/base/bytes.hpp"
#include "server/target/tail_server.hpp"

namespace backtrail::server {
namespace {

using tracee::ThreadId;

/// Most bytes buffered for a slow client.
constexpr std::size_t kMostWaiting = std::size_t{16} << 20U;

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

}  // namespace

void append_tail_frame(ThreadId thread, std::span<const decoder::Record> records,
                       std::uint64_t lost, TailNews news, std::vector<std::uint8_t>& out) {
  std::array<std::uint8_t, kTailFrameBytes> header{};
  store_le(header.data(), static_cast<std::uint32_t>(thread.pid));
  store_le(header.data() + 4, static_cast<std::uint32_t>(thread.tid));
  store_le(header.data() + 8, static_cast<std::uint32_t>(records.size()));
  store_le(header.data() + 12, static_cast<std::uint32_t>(news));
  store_le(header.data() + 16, lost);
  out.insert(out.end(), header.begin(), header.end());
  for (const decoder::Record& record : records) append_record(record, out);
}

TailClient::TailClient(tracee::UniqueFd socket, std::optional<tracee::DiskQueue> spool, int epoll,
                       std::uint64_t name)
    : socket_{std::move(socket)}, spool_{std::move(spool)}, epoll_{epoll}, name_{name} {
  epoll_event event{};
  event.events = watched_ = EPOLLIN;
  event.data.u64 = name_;
  ::epoll_ctl(epoll_, EPOLL_CTL_ADD, socket_.get(), &event);
  waiting_.assign(kTailGreeting.begin(), kTailGreeting.end());
  send();
}

bool TailClient::post(ThreadId thread, std::span<const decoder::Record> records, std::uint64_t lost,
                      TailNews news) {
  if (!socket_ || !wants(thread)) return true;  // The client does not want these records.
  const std::size_t size = kTailFrameBytes + records.size() * kTailRecordBytes;
  const bool fits = (waits() + size <= kMostWaiting || records.empty()) && !spooling();
  if (!fits && !spool_) {
    send();
    return false;
  }
  if (fits) {
    append_tail_frame(thread, records, lost, news, waiting_);
  } else {
    frame_.clear();
    append_tail_frame(thread, records, lost, news, frame_);
    if (!spool_->push(frame_)) return false;
  }
  send();
  return true;
}

void TailClient::serve(std::uint32_t events) {
  // Both directions are closed: the client reads no more.
  if ((events & (EPOLLHUP | EPOLLERR)) != 0) return close();
  if ((events & EPOLLIN) != 0) read_wish();
  send();
}

void TailClient::drain(int patience_ms) {
  send();
  while (socket_ && !has_all()) {
    pollfd waited{socket_.get(), POLLOUT, 0};
    if (::poll(&waited, 1, patience_ms) != 1 || (waited.revents & POLLOUT) == 0) return;
    send();
  }
}

void TailClient::send() {
  do {
    send_waiting();
  } while (socket_ && waits() == 0 && take_from_spool());
  watch();
}

void TailClient::send_waiting() {
  while (socket_ && waits() != 0) {
    const ssize_t count =
        ::send(socket_.get(), waiting_.data() + sent_, waits(), MSG_DONTWAIT | MSG_NOSIGNAL);
    if (count > 0) {
      sent_ += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      return close();
    }
  }
  if (sent_ < waiting_.size() / 2) return;
  waiting_.erase(waiting_.begin(), waiting_.begin() + static_cast<std::ptrdiff_t>(sent_));
  sent_ = 0;
}

bool TailClient::take_from_spool() {
  constexpr std::size_t kPiece = std::size_t{1} << 20U;
  if (!spooling()) return false;
  waiting_.resize(kPiece);
  sent_ = 0;
  const auto count = spool_->pop(waiting_);
  waiting_.resize(count.value_or(0));
  if (!count) close();  // Frames after a lost part of the spool would be unreadable.
  return !waiting_.empty();
}

/// Reads wishes, which the client may send at any time.
void TailClient::read_wish() {
  constexpr std::size_t kLongest = 32;
  std::array<char, kLongest> text{};
  const ssize_t count = ::recv(socket_.get(), text.data(), text.size(), MSG_DONTWAIT);
  if (count < 0) return;
  // A client that has shut down its sending side may still read. A wish that is too long is
  // ignored.
  may_wish_ = count != 0 && wish_.size() <= kLongest;
  wish_.append(text.data(), static_cast<std::size_t>(count));
  for (std::size_t end = wish_.find('\n'); end != std::string::npos; end = wish_.find('\n')) {
    grant(std::string_view{wish_}.substr(0, end));
    wish_.erase(0, end + 1);
  }
}

void TailClient::grant(std::string_view wish) {
  pid_t number = 0;
  constexpr std::size_t kWord = 4;
  const auto digits = wish.substr(std::min(kWord, wish.size()));
  const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (parsed.ec != std::errc{}) return;
  if (wish.starts_with("pid ")) pid_ = number;
  if (wish.starts_with("tid ")) tid_ = number;
}

bool TailClient::wants(ThreadId thread) const {
  if (thread.pid == 0) return true;
  return (!pid_ || *pid_ == thread.pid) && (!tid_ || *tid_ == thread.tid);
}

void TailClient::close() {
  socket_.reset();
  spool_.reset();
  waiting_ = {};
  sent_ = 0;
}

void TailClient::watch() {
  const std::uint32_t wanted = (may_wish_ ? EPOLLIN : 0U) | (has_all() ? 0U : EPOLLOUT);
  if (!socket_ || wanted == watched_) return;
  epoll_event event{};
  event.events = watched_ = wanted;
  event.data.u64 = name_;
  ::epoll_ctl(epoll_, EPOLL_CTL_MOD, socket_.get(), &event);
}

}  // namespace backtrail::server
