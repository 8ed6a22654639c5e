// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The server loop in a thread, with a fake target and a fake session.

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <functional>
#include <future>
#include <memory>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <poll.h>
#include <pthread.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "server/rsp/frame_writer.hpp"
#include "server/transport/server_loop.hpp"
#include "test/integration/rsp_client.hpp"
#include "test/support/fake_target.hpp"

namespace backtrail::server {

using test::RspClient;

/// A target whose pump() can be set to work until there is input, like software execution.
class PumpTarget final : public test::FakeTarget {
 public:
  void pump(int input_fd) override {
    ++pumps;
    eventfd_t ignored = 0;
    if (::eventfd_read(event_.get(), &ignored) == 0 && on_event) on_event();
    if (!works_until_input) return;
    ::pollfd input{input_fd, POLLIN, 0};
    if (::poll(&input, 1, 20'000) == 0) ADD_FAILURE() << "no input within 20 seconds";
  }
  [[nodiscard]] int event_fd() const override { return event_.get(); }
  [[nodiscard]] bool needs_pump() override { return works_until_input; }
  void signal_event() { ::eventfd_write(event_.get(), 1); }
  [[nodiscard]] bool running() const override { return works_until_input; }

  std::atomic<int> pumps = 0;
  std::atomic<bool> works_until_input = false;
  std::function<void()> on_event;  ///< Called in the loop's thread.

 private:
  tracee::UniqueFd event_{::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
};

/// Answers a few packets.
class PlayConversation final : public Conversation {
 public:
  PlayConversation(PumpTarget& target, PacketSink& sink) : target_{target}, sink_{sink} {}

  void on_packet(std::string_view payload) override {
    if (payload == "QStartNoAckMode") {
      sink_.send_packet("OK");
      no_ack_ = true;
    } else if (payload == "work") {
      target_.works_until_input = true;
    } else if (payload == "twice") {
      sink_.send_packet("one");
      sink_.send_packet("two");
    } else if (payload.substr(0, 4) == "big:") {
      // The text has neither runs nor bytes to escape, so its size is the size on the wire.
      std::string text;
      const int size = std::stoi(std::string{payload.substr(4)});
      while (text.size() < static_cast<std::size_t>(size)) text += "abcdefghij";
      sink_.send_packet(text);
    } else if (payload == "disconnect" || payload == "exit") {
      sink_.send_packet("OK");
      fate_ = payload == "exit" ? SessionFate::kExit : SessionFate::kDisconnect;
    } else {
      sink_.send_packet("got " + std::string{payload});
    }
  }
  void on_interrupt() override {
    target_.works_until_input = false;
    sink_.send_packet("T02");
  }
  void on_target_events() override {
    while (target_.take_event()) sink_.send_packet("event");
  }
  [[nodiscard]] bool no_ack() const override { return no_ack_; }
  [[nodiscard]] SessionFate fate() const override { return fate_; }

 private:
  PumpTarget& target_;
  PacketSink& sink_;
  bool no_ack_ = false;
  SessionFate fate_ = SessionFate::kServe;
};

/// Runs a loop in a separate thread.
class ServerIo : public testing::Test {
 protected:
  ServerIo() { target.add_process(100); }
  ~ServerIo() override {
    if (!thread_.joinable()) return;
    if (!ended_) stop(SIGTERM);
    thread_.join();
  }

  void serve(const std::string& comm, LoopOptions options = {}) {
    auto opened = ServerLoop::open(
        parse_comm(comm).value(), target, state,
        [this](PacketSink& sink) { return std::make_unique<PlayConversation>(target, sink); },
        std::move(options));
    ASSERT_TRUE(opened) << opened.error();
    loop_ = std::move(*opened);
    std::packaged_task<int()> task{[this] { return loop_->run(); }};
    result_ = task.get_future();
    // The loop's signals must not reach the test's thread.
    sigset_t set;
    ::sigemptyset(&set);
    for (const int signal : {SIGTERM, SIGINT, SIGHUP}) ::sigaddset(&set, signal);
    ::pthread_sigmask(SIG_BLOCK, &set, nullptr);
    thread_ = std::thread{std::move(task)};
  }
  void stop(int signal) { ::pthread_kill(thread_.native_handle(), signal); }
  /// Returns the exit status; -1 if the loop does not end.
  int status() {
    if (result_.wait_for(std::chrono::seconds{20}) != std::future_status::ready) return -1;
    ended_ = true;
    return result_.get();
  }
  RspClient connect(int room = 0) { return RspClient::tcp(loop_->port(), room); }
  RspClient connect_without_acks() {
    RspClient client = connect();
    client.send_packet("QStartNoAckMode");
    EXPECT_EQ(client.read(7), "+$OK#9a");
    client.send("+");
    return client;
  }
  static std::string reply(std::string_view payload) { return rsp::frame_packet(payload); }

  PumpTarget target;
  ServerState state;

 private:
  std::unique_ptr<ServerLoop> loop_;
  std::future<int> result_;
  std::thread thread_;
  bool ended_ = false;
};

}  // namespace backtrail::server
