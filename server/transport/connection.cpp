// SPDX-License-Identifier: Apache-2.0
#include "server/transport/connection.hpp"

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include <boost/asio/buffer.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>

#include <fcntl.h>
#include <sys/socket.h>

#include "arch/base/log.hpp"
#include "server/rsp/error_reply.hpp"
#include "server/rsp/frame_parser.hpp"
#include "server/rsp/frame_writer.hpp"
#include "server/transport/delivery.hpp"
#include "server/transport/outbox.hpp"

namespace backtrail::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr std::size_t kReadBytes = std::size_t{64} << 10;
/// Bytes accepted beyond the announced maximum, for clients that count '$', '#' and the checksum
/// in.
constexpr std::size_t kPayloadSlack = 64;

/// Most bytes of a packet that the log shows.
constexpr std::size_t kLogBytes = 200;

/// Returns the start of a payload for the log, without control characters; empty if the log is off.
std::string loggable(std::string_view payload) {
  if (!log::rsp().writes(log::Level::kDebug)) return {};
  std::string text{payload.substr(0, kLogBytes)};
  for (char& c : text) {
    if (c < ' ' || c > '~') c = '.';
  }
  if (payload.size() > kLogBytes) text += fmt::format("... ({} bytes)", payload.size());
  return text;
}

/// Restores a descriptor's status flags: other programs may share the terminal or pipe.
class FlagsKeeper {
 public:
  explicit FlagsKeeper(int fd) : fd_{fd}, flags_{::fcntl(fd, F_GETFL)} {}
  void restore() const {
    if (flags_ >= 0) ::fcntl(fd_, F_SETFL, flags_);
  }

 private:
  int fd_;
  int flags_;
};

}  // namespace

struct Connection::Impl : std::enable_shared_from_this<Connection::Impl> {
  Impl(asio::io_context& io, ClientChannel channel, ConnectionListener& owner)
      : listener{&owner},
        is_socket{channel.is_socket},
        input_flags{channel.input.get()},
        output_flags{channel.output.get()},
        input{io, channel.input.release()},
        separate_output{io},
        timer{io},
        delivery_timer{io} {
    if (channel.output) separate_output.assign(channel.output.release());
    // write_now() and read_now() must not wait.
    error_code ignored;
    output().non_blocking(true, ignored);
    input.non_blocking(true, ignored);
  }

  void read_more();
  void start_reading();
  void read_now();
  void on_read(const error_code& error, std::size_t count);
  void on_input_end();
  void process_input();
  void handle_unread();
  void handle(const rsp::Frame& frame);
  void on_client_packet(const rsp::Frame& frame);
  bool is_opening_again(const std::string& payload);
  void packet_done();
  void add(std::string_view payload, bool notification);
  void flush();
  void write_now();
  void write_later();
  void on_written(const error_code& error, std::size_t count);
  void finish();
  void await_progress();
  void linger();
  void linger_on(int on_their_way, std::chrono::milliseconds since);
  void close_when_delivered(std::chrono::milliseconds pause);
  void close();
  /// Returns the level for complaints about the client: after the first, only debug, so that a
  /// faulty client does not fill the log.
  log::Level complaint_level() {
    return std::exchange(complained, true) ? log::Level::kDebug : log::Level::kWarn;
  }
  [[nodiscard]] asio::posix::stream_descriptor& output() {
    return separate_output.is_open() ? separate_output : input;
  }
  /// Returns true if nothing more is read but what is queued still goes to the client.
  [[nodiscard]] bool ending() const { return finishing || input_ended; }
  [[nodiscard]] bool paused() const { return outbox.ready_bytes() + writing.size() > kPauseBytes; }

  ConnectionListener* listener;
  bool is_socket;
  FlagsKeeper input_flags;
  FlagsKeeper output_flags;
  asio::posix::stream_descriptor input;
  asio::posix::stream_descriptor separate_output;  ///< Open if it is not `input`.
  asio::steady_timer timer;
  asio::steady_timer delivery_timer;
  rsp::FrameParser parser{Session::kPacketSize + kPayloadSlack};
  Outbox outbox;
  std::array<char, kReadBytes> buffer{};
  std::string_view unread;  ///< Bytes of `buffer` not parsed yet.
  std::string writing;      ///< Bytes of the write in flight; empty = none in flight.
  std::size_t written = 0;  ///< Bytes of `writing` that the kernel has taken.
  std::optional<std::chrono::milliseconds> patience;  ///< See set_patience().
  std::uint64_t sent_count = 0;
  std::optional<std::string> opening;  ///< First packet, until its answer is acknowledged.
  bool opened = false;
  bool wants_input = false;  ///< More input is to be read; no read is in flight.
  bool reading = false;      ///< A read is in flight.
  bool processing =
      false;  ///< handle_unread() is running; the collected output is sent at its end.
  bool acknowledging = true;
  bool finishing = false;    ///< No more input is wanted.
  bool input_ended = false;  ///< The client sends nothing more, but may still read.
  bool lingering = false;    ///< Everything is sent; the client is expected to close.
  bool closed = false;
  bool complained = false;
};

void Connection::Impl::read_more() {
  if (reading || closed || input_ended || (paused() && !lingering)) return;
  wants_input = true;
}

void Connection::Impl::start_reading() {
  if (!std::exchange(wants_input, false)) return;
  reading = true;
  input.async_read_some(asio::buffer(buffer),
                        [self = shared_from_this()](const error_code& error, std::size_t count) {
                          self->reading = false;
                          if (!self->closed) self->on_read(error, count);
                        });
}

void Connection::Impl::read_now() {
  error_code error;
  const std::size_t count = input.read_some(asio::buffer(buffer), error);
  if (error == asio::error::would_block || error == asio::error::interrupted) return;
  wants_input = false;
  on_read(error, count);
}

void Connection::Impl::on_read(const error_code& error, std::size_t count) {
  if (error) {
    log::rsp().debug("op=read {}{}", error.message(),
                     parser.in_packet() ? ", within a packet" : "");
    if (error == asio::error::eof) return on_input_end();
    return close();
  }
  if (!finishing) {
    unread = std::string_view{buffer.data(), count};
    process_input();
  } else {
    read_more();
  }
}

/// Closes once the answers are written. The client may have ended only its input (shutdown(2), a
/// pipe of commands); if it has gone, writing fails.
void Connection::Impl::on_input_end() {
  input_ended = true;
  acknowledging = false;
  outbox.release_all();
  if (!writing.empty()) await_progress();
  flush();
}

void Connection::Impl::process_input() {
  if (processing) return;
  handle_unread();
  flush();
  // The answers that made it pause may be with the client already.
  while (!closed && !finishing && !unread.empty() && !paused()) {
    handle_unread();
    flush();
  }
  if (!closed && (unread.empty() || finishing)) read_more();
}

/// Handles what is complete, and keeps the rest in the parser, unless too many answers wait.
void Connection::Impl::handle_unread() {
  processing = true;
  const std::uint64_t ignored_before = parser.ignored_bytes();
  while (!closed && !finishing && !paused()) {
    const auto frame = parser.next(unread);
    if (!frame) break;
    handle(*frame);
  }
  processing = false;
  if (parser.ignored_bytes() != ignored_before) {
    log::rsp().debug("op=read ignored {} bytes outside packets",
                     parser.ignored_bytes() - ignored_before);
  }
}

void Connection::Impl::handle(const rsp::Frame& frame) {
  switch (frame.kind) {
    case rsp::FrameKind::kPacket:
    case rsp::FrameKind::kOversized:
    case rsp::FrameKind::kBadChecksum:
      on_client_packet(frame);
      break;
    case rsp::FrameKind::kAck:
      opening.reset();
      outbox.on_ack();
      break;
    case rsp::FrameKind::kNack:
      outbox.on_nack();
      break;
    case rsp::FrameKind::kInterrupt:
      log::rsp().debug("<- interrupt");
      listener->on_interrupt();
      break;
  }
}

/// Returns true if the packet repeats the first one, whose answer the client has not acknowledged.
/// A client that waits for a slow server sends its first packet again, even while the answer is on
/// its way; a second answer would look like the answer to its second packet.
bool Connection::Impl::is_opening_again(const std::string& payload) {
  if (std::exchange(opened, true)) {
    const bool again = opening == payload;
    if (!again) opening.reset();
    return again;
  }
  opening = payload;
  return false;
}

void Connection::Impl::on_client_packet(const rsp::Frame& frame) {
  log::rsp().debug("<- ${}", loggable(frame.payload));
  if (frame.kind == rsp::FrameKind::kBadChecksum) {
    log::rsp().log(complaint_level(), "op=read wrong checksum{}",
                   acknowledging ? ", asked for again" : "");
    if (acknowledging) {
      outbox.add_acknowledgement('-');
      return;
    }
    // In no-ack mode the client does not send the packet again. Handling it despite the bad
    // checksum is better than a client that waits for ever.
  }
  if (acknowledging && is_opening_again(frame.payload)) return;
  if (acknowledging) outbox.add_acknowledgement('+');
  outbox.on_client_packet();
  if (frame.kind == rsp::FrameKind::kOversized) {
    log::rsp().log(complaint_level(), "op=read a packet longer than {} bytes was skipped",
                   Session::kPacketSize);
    add(rsp::error_reply(), false);
    return;
  }
  listener->on_packet(frame.payload);
}

void Connection::Impl::add(std::string_view payload, bool notification) {
  if (closed) return;
  log::rsp().debug("-> {}{}", notification ? '%' : '$', loggable(payload));
  ++sent_count;
  if (notification) {
    outbox.add_notification(rsp::frame_notification(payload));
  } else {
    outbox.add_packet(rsp::frame_packet(payload), acknowledging);
  }
  if (outbox.size_bytes() > kAbortBytes) {
    log::rsp().error("op=write the client does not read; connection closed");
    close();
    return;
  }
  flush();
}

void Connection::Impl::flush() {
  if (processing) return;
  while (!closed && writing.empty() && outbox.has_ready()) {
    writing = outbox.take_ready();
    write_now();
    if (!closed && !writing.empty()) write_later();
  }
  if (closed || !writing.empty() || !ending()) return;
  if (input_ended) return close();
  linger();
}

/// Writes as much as the kernel takes at once, which is everything but for a client that does not
/// read: an answer needs no turn of the event loop.
void Connection::Impl::write_now() {
  std::size_t done = 0;
  error_code error;
  while (!error && done < writing.size()) {
    done += output().write_some(asio::buffer(writing.data() + done, writing.size() - done), error);
    if (error == asio::error::interrupted) error.clear();
  }
  writing.erase(0, done);
  if (!error || error == asio::error::would_block || error == asio::error::try_again) return;
  log::rsp().debug("op=write {}", error.message());
  close();
}

void Connection::Impl::write_later() {
  if (ending()) await_progress();
  output().async_write_some(
      asio::buffer(writing) + written,
      [self = shared_from_this()](const error_code& error, std::size_t count) {
        if (!self->closed) self->on_written(error, count);
      });
}

void Connection::Impl::on_written(const error_code& error, std::size_t count) {
  if (error) {
    log::rsp().debug("op=write {}", error.message());
    return close();
  }
  written += count;
  if (written < writing.size()) return write_later();
  writing.clear();
  written = 0;
  timer.cancel();
  flush();
  if (closed || lingering) return;
  if (!unread.empty() && !finishing) {
    process_input();
  } else {
    read_more();
  }
}

void Connection::Impl::finish() {
  if (finishing || closed) return;
  finishing = true;
  unread = {};
  outbox.release_all();
  if (!writing.empty()) await_progress();
  flush();
}

/// Closes the connection if the client takes nothing for as long as the owner has patience.
void Connection::Impl::await_progress() {
  if (!patience) return;
  timer.expires_after(*patience);
  timer.async_wait([self = shared_from_this()](const error_code& error) {
    if (error || self->closed) return;
    log::rsp().warn("op=write the client does not read; connection closed");
    self->close();
  });
}

/// Waits until the client has the rest or closes, or for the timer. Closing a socket with unread
/// input resets the connection, and the reset may overtake the last answer. So does input that
/// comes later, as acknowledgements do.
void Connection::Impl::linger() {
  if (lingering) return;
  lingering = true;
  if (!is_socket || ::shutdown(output().native_handle(), SHUT_WR) != 0) {
    close();
    return;
  }
  linger_on(bytes_on_their_way(output().native_handle()), {});
  read_more();
  if (!acknowledging) close_when_delivered(std::chrono::milliseconds{1});
}

/// Closes after kLinger, or once the client's kernel has everything or takes nothing any more.
/// @param since  How long the number of bytes on their way has been the same.
void Connection::Impl::linger_on(int on_their_way, std::chrono::milliseconds since) {
  timer.expires_after(kLinger);
  timer.async_wait([self = shared_from_this(), on_their_way, since](const error_code& error) {
    if (error || self->closed) return;
    const int left = bytes_on_their_way(self->output().native_handle());
    const auto now_since = left < on_their_way ? std::chrono::milliseconds{} : since + kLinger;
    if (left == 0 || (self->patience && now_since >= *self->patience)) return self->close();
    self->linger_on(left, now_since);
  });
}

void Connection::Impl::close_when_delivered(std::chrono::milliseconds pause) {
  if (closed) return;
  if (is_delivered(output().native_handle())) return close();
  delivery_timer.expires_after(pause);
  delivery_timer.async_wait([self = shared_from_this(), pause](const error_code& error) {
    if (!error) self->close_when_delivered(2 * pause);
  });
}

void Connection::Impl::close() {
  if (closed) return;
  closed = true;
  timer.cancel();
  delivery_timer.cancel();
  if (!is_socket) {
    input_flags.restore();
    output_flags.restore();
  }
  error_code ignored;
  input.close(ignored);
  separate_output.close(ignored);
  // The call comes from the event loop, not from inside the code that noticed the end.
  asio::post(timer.get_executor(), [self = shared_from_this()] {
    if (self->listener != nullptr) std::exchange(self->listener, nullptr)->on_closed();
  });
}

Connection::Connection(asio::io_context& io, ClientChannel channel, ConnectionListener& listener)
    : impl_{std::make_shared<Impl>(io, std::move(channel), listener)} {}

Connection::~Connection() {
  impl_->listener = nullptr;
  impl_->close();
}

void Connection::start() {
  impl_->read_more();
}
void Connection::start_reading() {
  impl_->start_reading();
}
void Connection::read_now() {
  impl_->read_now();
}
bool Connection::only_wants_input() const {
  return impl_->wants_input && impl_->writing.empty() && !impl_->finishing && !impl_->closed;
}
void Connection::send_packet(std::string payload) {
  impl_->add(payload, false);
}
void Connection::send_notification(std::string payload) {
  impl_->add(payload, true);
}
void Connection::stop_acknowledging() {
  impl_->acknowledging = false;
}
void Connection::set_patience(std::chrono::milliseconds patience) {
  impl_->patience = patience;
}
void Connection::finish() {
  impl_->finish();
}
std::uint64_t Connection::sent() const {
  return impl_->sent_count;
}

Connection::Interest Connection::interest() const {
  if (impl_->closed) return {};
  return {impl_->input.native_handle(), impl_->reading || impl_->wants_input,
          impl_->output().native_handle(), !impl_->writing.empty()};
}

}  // namespace backtrail::server
