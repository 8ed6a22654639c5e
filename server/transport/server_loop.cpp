// SPDX-License-Identifier: Apache-2.0
#include "server/transport/server_loop.hpp"

#include <cerrno>
#include <cstdio>
#include <iterator>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <poll.h>
#include <sys/epoll.h>
#include <sys/wait.h>

#include <fmt/format.h>
#include <boost/asio/io_context.hpp>
#include <boost/asio/posix/stream_descriptor.hpp>

#include "arch/base/log.hpp"
#include "server/session/notices.hpp"
#include "server/transport/connection.hpp"
#include "server/transport/listener.hpp"
#include "server/transport/stop_signals.hpp"
#include "server/transport/wake_set.hpp"

namespace backtrail::server {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

/// Waits for a descriptor that another object owns and reads.
class Watched {
 public:
  Watched(asio::io_context& io, int fd) : stream_{io} {
    if (fd >= 0) stream_.assign(fd);
  }
  ~Watched() {
    if (stream_.is_open()) stream_.release();
  }
  Watched(const Watched&) = delete;
  Watched& operator=(const Watched&) = delete;

  /// Makes run_one() return once the descriptor is readable.
  void arm() {
    if (armed_ || !stream_.is_open()) return;
    armed_ = true;
    stream_.async_wait(asio::posix::descriptor_base::wait_read, [this](const error_code& error) {
      if (error == asio::error::operation_aborted) return;
      armed_ = false;
      ready_ = true;
    });
  }
  /// Returns true if the descriptor has become readable since the last call.
  bool take_ready() { return std::exchange(ready_, false); }

 private:
  asio::posix::stream_descriptor stream_;
  bool armed_ = false;
  bool ready_ = false;
};

}  // namespace

struct ServerLoop::Impl final : ConnectionListener {
  Impl(Target& the_target, ServerState& the_state, ConversationFactory factory,
       LoopOptions the_options)
      : target{the_target},
        state{the_state},
        make_conversation{std::move(factory)},
        options{std::move(the_options)},
        run_control{target.run_control()},
        target_events{io, run_control != nullptr ? run_control->event_fd() : -1} {}
  ~Impl() override = default;

  int run();
  void wait_for_news();
  bool serve_client();
  void listen();
  void on_client(Explained<ClientChannel> channel);
  void on_packet(std::string_view payload) override;
  void on_interrupt() override;
  void on_closed() override;
  void after_client_input();
  [[nodiscard]] bool is_last_client() const;
  void service_target();
  void watch_input();
  void wait_for_detached_child();

  Target& target;
  ServerState& state;
  ConversationFactory make_conversation;
  LoopOptions options;
  RunControl* run_control;

  asio::io_context io{1};
  Watched target_events;
  WakeSet input;
  std::unique_ptr<Listener> listener;
  std::unique_ptr<Connection> connection;
  std::unique_ptr<Conversation> conversation;
  std::optional<StopSignals> stop_signals;
  std::optional<Watched> stop;     ///< Waits on stop_signals.
  bool fate_seen = false;          ///< The session has asked to end its connection.
  bool target_came_first = false;  ///< Before a packet that waits (serve_client()).
  bool done = false;
  int exit_status = 0;
};

int ServerLoop::Impl::run() {
  stop_signals.emplace();
  stop.emplace(io, stop_signals->fd());
  listen();
  while (!done) {
    service_target();
    if (!serve_client()) wait_for_news();
    if (!stop->take_ready()) continue;
    if (const auto signal = stop_signals->take()) {
      log::server().info("op=stop signal={}", *signal);
      exit_status = 128 + *signal;
      done = true;
    }
  }
  const bool waits = exit_status == 0 && state.detached_child.has_value();
  conversation.reset();
  connection.reset();
  listener->close();
  leave_processes(target);
  if (waits) wait_for_detached_child();
  stop.reset();
  stop_signals.reset();
  return exit_status;
}

/// Waits until something happens, then does all work that needs no further wait.
void ServerLoop::Impl::wait_for_news() {
  if (connection) connection->start_reading();
  stop->arm();
  target_events.arm();
  io.restart();
  io.run_one();
  io.poll();
}

/// Answers the client's packets for as long as they are all there is to do, which is nearly always.
/// A packet then takes three system calls beside its own: the io_context would add a few.
/// @return False without a wait if wait_for_news() is needed.
bool ServerLoop::Impl::serve_client() {
  if (!connection || !connection->only_wants_input()) return false;
  pollfd waited[] = {{connection->interest().input_fd, POLLIN, 0},
                     {stop_signals->fd(), POLLIN, 0},
                     {run_control != nullptr ? run_control->event_fd() : -1, POLLIN, 0}};
  const auto& [client, stop_signal, event] = waited;
  do {
    if (::poll(waited, std::size(waited), -1) < 0 && errno != EINTR) return false;
    if (stop_signal.revents != 0) return false;
    // A packet is about the target as it is: what has happened to that comes first. Only once,
    // because a target that runs may have news all the time.
    const bool both = event.revents != 0 && client.revents != 0;
    target_came_first = both && !target_came_first;
    if (target_came_first) return true;
    if (client.revents != 0) connection->read_now();
  } while (event.revents == 0 && !done && connection->only_wants_input() &&
           (run_control == nullptr || !run_control->needs_pump()));
  // The rest of an answer, or the end of the connection.
  if (!connection->only_wants_input()) {
    io.restart();
    io.poll();
  }
  return true;
}

void ServerLoop::Impl::listen() {
  listener->announce();
  listener->accept([this](Explained<ClientChannel> channel) { on_client(std::move(channel)); });
}

void ServerLoop::Impl::on_client(Explained<ClientChannel> channel) {
  if (!channel) {
    fmt::print(stderr, "{}\n", channel.error());
    exit_status = 1;
    done = true;
    return;
  }
  if (options.once) listener->close();
  fate_seen = false;
  connection = std::make_unique<Connection>(io, std::move(*channel), *this);
  if (!options.once && !listener->ends_with_client()) {
    connection->set_patience(Connection::kPatience);
  }
  conversation = make_conversation(*connection);
  connection->start();
}

void ServerLoop::Impl::on_packet(std::string_view payload) {
  if (fate_seen) return;
  conversation->on_packet(payload);
  if (conversation->no_ack()) connection->stop_acknowledging();
  after_client_input();
}

void ServerLoop::Impl::on_interrupt() {
  if (fate_seen) return;
  conversation->on_interrupt();
  after_client_input();
}

void ServerLoop::Impl::after_client_input() {
  if (fate_seen || !conversation || conversation->fate() == SessionFate::kServe) return;
  fate_seen = true;
  connection->finish();
}

void ServerLoop::Impl::on_closed() {
  const bool client_left = !fate_seen;
  const bool exit_asked = conversation->fate() == SessionFate::kExit;
  input.watch({});
  conversation.reset();
  connection.reset();
  if (exit_asked || is_last_client() || (client_left && listener->ends_with_client())) {
    done = true;
    return;
  }
  if (client_left) notices::connection_ended(options.server_name);
  listen();
}

/// Returns true if another connection would have no use.
bool ServerLoop::Impl::is_last_client() const {
  return options.once || (!state.extended && !state.multi && target.processes().empty());
}

/// Alternates the target's work and the session's reports until nothing is new. The target may work
/// for long; it returns when there is input.
void ServerLoop::Impl::service_target() {
  if (run_control == nullptr) return;
  for (bool news = true; news && !done;) {
    watch_input();
    run_control->pump(input.fd());
    if (!conversation || fate_seen) return;
    const std::uint64_t sent = connection->sent();
    conversation->on_target_events();
    after_client_input();
    news = connection->sent() != sent && run_control->running();
  }
}

void ServerLoop::Impl::watch_input() {
  std::map<int, std::uint32_t> wanted{{stop_signals->fd(), EPOLLIN}};
  if (const int side = run_control->side_fd(); side >= 0) wanted[side] |= EPOLLIN;
  if (connection) {
    const Connection::Interest interest = connection->interest();
    if (interest.input) wanted[interest.input_fd] |= EPOLLIN;
    if (interest.output) wanted[interest.output_fd] |= EPOLLOUT;
  } else if (listener->fd() >= 0) {
    wanted[listener->fd()] |= EPOLLIN;
  }
  input.watch(wanted);
}

/// Waits for the detached program, because a shell expects the command that it started to end last.
void ServerLoop::Impl::wait_for_detached_child() {
  while (!stop_signals->take()) {
    const pid_t ended = ::waitpid(*state.detached_child, nullptr, WNOHANG);
    if (ended != 0) return;
    wait_for_news();
    if (run_control != nullptr) run_control->pump(stop_signals->fd());
  }
}

Explained<std::unique_ptr<ServerLoop>> ServerLoop::open(const CommSpec& comm, Target& target,
                                                        ServerState& state,
                                                        ConversationFactory make_conversation,
                                                        LoopOptions options) {
  auto impl =
      std::make_unique<Impl>(target, state, std::move(make_conversation), std::move(options));
  auto listener = open_listener(impl->io, comm);
  if (!listener) return explain(listener.error());
  impl->listener = std::move(*listener);
  return std::unique_ptr<ServerLoop>{new ServerLoop{std::move(impl)}};
}

ServerLoop::ServerLoop(std::unique_ptr<Impl> impl) : impl_{std::move(impl)} {}
ServerLoop::~ServerLoop() = default;

int ServerLoop::run() {
  return impl_->run();
}
std::uint16_t ServerLoop::port() const {
  return impl_->listener->port();
}

void leave_processes(Target& target) {
  ProcessControl* control = target.process_control();
  if (control == nullptr) return;
  std::vector<pid_t> started;
  std::vector<pid_t> attached;
  for (const pid_t pid : target.processes()) {
    (target.was_attached(pid) ? attached : started).push_back(pid);
  }
  notices::leaving(started, attached);
  const auto report = [](const char* what, pid_t pid, const Result<void>& result) {
    if (!result && !result.error().is(TraceErrc::kTraceeGone)) {
      log::server().error("op={} pid={} {}", what, pid, result.error().message());
    }
  };
  for (const pid_t pid : started) report("kill", pid, control->kill(pid));
  for (const pid_t pid : attached) report("detach", pid, control->detach(pid));
}

}  // namespace backtrail::server
