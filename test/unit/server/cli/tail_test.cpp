// SPDX-License-Identifier: Apache-2.0
#include "server/cli/tail.hpp"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <thread>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "server/cli/decode.hpp"
#include "server/target/tail_server.hpp"

namespace backtrail::server {
namespace {

using decoder::Record;

class TailTest : public testing::Test {
 protected:
  TailTest() {
    path_ = (std::filesystem::temp_directory_path() / ("bt-tail-" + std::to_string(::getpid())))
                .string();
    listen({.path = path_});
  }
  void listen(const TailListening& options) {
    server_.reset();
    auto server = TailServer::listen(options);
    ASSERT_TRUE(server);
    server_ = std::move(*server);
  }
  [[nodiscard]] tracee::UniqueFd connect() const {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path, path_.c_str(), path_.size() + 1);
    tracee::UniqueFd socket{::socket(AF_UNIX, SOCK_STREAM, 0)};
    EXPECT_EQ(::connect(socket.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address),
              0);
    return socket;
  }
  /// Reads everything available; the server sends queued data in between.
  std::vector<TailReader::Item> read_all(const tracee::UniqueFd& socket, TailReader& reader) {
    std::vector<TailReader::Item> out;
    std::array<std::uint8_t, 1000> buffer{};
    for (;;) {
      server_->poll();
      const ssize_t count = ::recv(socket.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
      if (count <= 0) return out;
      for (auto& item : reader.add(std::span{buffer}.first(static_cast<std::size_t>(count))))
        out.push_back(item);
    }
  }
  static std::vector<Record> branches(std::uint64_t first, std::uint64_t count) {
    std::vector<Record> out;
    for (std::uint64_t i = 0; i < count; ++i)
      out.push_back(decoder::branch(TraceeAddr{first + i}, TraceeAddr{first + i + 1}));
    return out;
  }

  /// Attaches the client that has connected and sends numbered records, more than the client's
  /// memory buffer holds.
  /// @return The number of records.
  std::uint64_t overrun(decoder::TraceHub& hub) {
    constexpr std::uint64_t kBatch = 4096;
    constexpr std::uint64_t kAll = 400 * kBatch;
    server_->poll();
    server_->attach({1, 1}, hub);
    for (std::uint64_t sent = 0; sent < kAll; sent += kBatch) hub.consume(branches(sent, kBatch));
    return kAll;
  }

  /// Returns true if poll() never runs out of work. The server's clock ticks now and then.
  [[nodiscard]] bool busy() const {
    for (int i = 0; i < 1000; ++i) {
      if (!readable()) return false;
      server_->poll();
    }
    return true;
  }
  [[nodiscard]] bool readable() const {
    pollfd waited{server_->fd(), POLLIN, 0};
    return ::poll(&waited, 1, 0) == 1;
  }

  std::string path_;
  std::unique_ptr<TailServer> server_;
};

TEST_F(TailTest, ClientsGetEveryRecordOfEveryThread) {
  decoder::TraceHub one;
  decoder::TraceHub two;
  const auto first = connect();
  const auto second = connect();
  EXPECT_TRUE(server_->poll());
  EXPECT_FALSE(server_->poll());
  server_->attach({10, 11}, one);
  server_->attach({20, 22}, two);
  server_->attach({20, 22}, two);
  one.consume(branches(100, 10'000));
  two.consume(branches(5, 1));
  for (const auto* socket : {&first, &second}) {
    TailReader reader;
    const auto items = read_all(*socket, reader);
    ASSERT_EQ(items.size(), 10'001U);
    for (std::uint64_t i = 0; i < 10'000; ++i) {
      ASSERT_EQ(items[i].tid, 11);
      ASSERT_EQ(items[i].record->from.value(), 100 + i);
      ASSERT_EQ(items[i].lost, 0U);
    }
    EXPECT_EQ(items.back().tid, 22);
  }
}

TEST_F(TailTest, ASlowClientLosesItsOwnRecordsAndKnowsHowMany) {
  decoder::TraceHub hub;
  const auto slow = connect();
  const std::uint64_t sent = overrun(hub);
  TailReader reader;
  // The client learns of its loss once it has caught up, although no record follows.
  const auto items = read_all(slow, reader);
  const std::uint64_t seen = items.size() - 1;
  ASSERT_LT(seen, sent);
  EXPECT_FALSE(items.back().record);
  EXPECT_EQ(items.back().lost + seen, sent);
  EXPECT_NE(tail_line(items.back()).find("records lost here"), std::string::npos);
  hub.consume(branches(sent, 1));
  const auto last = read_all(slow, reader);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].lost, 0U);
}

TEST_F(TailTest, ALossStandsWhereItHappened) {
  decoder::TraceHub hub;
  const auto slow = connect();
  const std::uint64_t sent = overrun(hub);
  // The client reads a part, and more records arrive before it has all.
  std::vector<std::uint8_t> part(std::size_t{8} << 20U);
  TailReader reader;
  std::uint64_t next = 0;
  std::uint64_t lost = 0;
  const auto take = [&](std::span<const std::uint8_t> bytes) {
    for (const auto& item : reader.add(bytes)) {
      lost += item.lost;
      if (item.record) {
        ASSERT_EQ(item.record->from.value(), next + lost);
        ++next;
      }
    }
  };
  for (std::size_t got = 0; got < part.size();) {
    const ssize_t count = ::recv(slow.get(), part.data(), part.size() - got, MSG_DONTWAIT);
    server_->poll();
    if (count <= 0) continue;
    got += static_cast<std::size_t>(count);
    take(std::span{part}.first(static_cast<std::size_t>(count)));
  }
  EXPECT_EQ(lost, 0U);
  hub.consume(branches(sent, 1));
  for (;;) {
    server_->poll();
    const ssize_t count = ::recv(slow.get(), part.data(), part.size(), MSG_DONTWAIT);
    if (count <= 0) break;
    take(std::span{part}.first(static_cast<std::size_t>(count)));
  }
  EXPECT_GT(lost, 0U);
  EXPECT_EQ(next + lost, sent + 1);
}

TEST_F(TailTest, ASlowClientLosesNothingWithASpool) {
  listen({.path = path_, .spool_folder = testing::TempDir(), .spool_bytes = 1ULL << 30U});
  decoder::TraceHub hub;
  const auto slow = connect();
  const std::uint64_t sent = overrun(hub);
  TailReader reader;
  std::uint64_t seen = 0;
  for (const auto& item : read_all(slow, reader)) {
    ASSERT_EQ(item.record->from.value(), seen++);
    ASSERT_EQ(item.lost, 0U);
  }
  EXPECT_EQ(seen, sent);
  // Afterwards the client keeps up again.
  hub.consume(branches(sent, 1));
  EXPECT_EQ(read_all(slow, reader).size(), 1U);
}

TEST_F(TailTest, AFullSpoolLosesAndCounts) {
  listen({.path = path_, .spool_folder = testing::TempDir(), .spool_bytes = 4ULL << 20U});
  decoder::TraceHub hub;
  const auto slow = connect();
  const std::uint64_t sent = overrun(hub);
  TailReader reader;
  const auto items = read_all(slow, reader);
  const std::uint64_t seen = items.size() - 1;
  ASSERT_LT(seen, sent);
  ASSERT_GT(seen * kTailRecordBytes, 16ULL << 20U);
  EXPECT_EQ(items.back().lost + seen, sent);
}

TEST_F(TailTest, AClientGetsWhatItWishes) {
  decoder::TraceHub one;
  decoder::TraceHub two;
  decoder::TraceHub other;
  const auto all = connect();
  const auto process = connect();
  const auto thread = connect();
  for (const auto& [socket, wish] :
       {std::pair{&process, std::string_view{"pid 10\n"}}, {&thread, "tid 12\npid 10\n"}}) {
    ASSERT_EQ(::send(socket->get(), wish.data(), wish.size(), 0),
              static_cast<ssize_t>(wish.size()));
  }
  server_->poll();
  server_->poll();
  server_->attach({10, 11}, one);
  server_->attach({10, 12}, two);
  server_->attach({20, 20}, other);
  one.consume(branches(1, 3));
  two.consume(branches(1, 2));
  other.consume(branches(1, 7));
  const auto seen = [&](const tracee::UniqueFd& socket) {
    TailReader reader;
    std::vector<pid_t> tids;
    for (const auto& item : read_all(socket, reader)) {
      EXPECT_EQ(item.pid, item.tid / 10 * 10);
      tids.push_back(item.tid);
    }
    return tids;
  };
  EXPECT_EQ(seen(all).size(), 12U);
  EXPECT_EQ(seen(process), (std::vector<pid_t>{11, 11, 11, 12, 12}));
  EXPECT_EQ(seen(thread), (std::vector<pid_t>{12, 12}));
}

TEST_F(TailTest, AFolderThatCannotBeWrittenToIsSaidAtOnce) {
  EXPECT_FALSE(TailServer::listen(
      {.path = path_ + ".other", .spool_folder = "/proc/self/fdinfo", .spool_bytes = 1}));
}

TEST_F(TailTest, ClientsComeAndGo) {
  decoder::TraceHub hub;
  {
    const auto gone = connect();
    server_->poll();
    server_->attach({1, 1}, hub);
  }
  hub.consume(branches(1, 10));
  hub.consume(branches(11, 10));
  const auto late = connect();
  EXPECT_TRUE(server_->poll());
  server_->attach({1, 1}, hub);
  hub.consume(branches(21, 1));
  TailReader reader;
  const auto items = read_all(late, reader);
  ASSERT_EQ(items.size(), 1U);
  EXPECT_EQ(tail_line(items[0]), "1 branch 0x15 -> 0x16\n");
}

TEST_F(TailTest, IsReadyWhenThereIsSomethingToDo) {
  EXPECT_FALSE(busy());
  const auto slow = connect();
  EXPECT_TRUE(readable());
  decoder::TraceHub hub;
  overrun(hub);
  EXPECT_FALSE(busy());  // The client reads nothing.
  std::vector<std::uint8_t> some(std::size_t{1} << 20U);
  ASSERT_GT(::recv(slow.get(), some.data(), some.size(), MSG_DONTWAIT), 0);
  EXPECT_TRUE(readable());
  // A client that has shut down its sending side may still read.
  ASSERT_EQ(::shutdown(slow.get(), SHUT_WR), 0);
  TailReader reader;
  while (::recv(slow.get(), some.data(), some.size(), MSG_DONTWAIT) > 0) server_->poll();
  server_->poll();
  EXPECT_FALSE(busy());
}

TEST_F(TailTest, WhoIsGoneTakesNoTime) {
  decoder::TraceHub hub;
  {
    const auto gone = connect();
    overrun(hub);
  }
  EXPECT_TRUE(readable());
  server_->poll();
  EXPECT_FALSE(busy());
  hub.consume(branches(1, 10));
}

TEST_F(TailTest, EndsAreTold) {
  const auto client = connect();
  server_->poll();
  {
    decoder::TraceHub one;
    decoder::TraceHub two;
    server_->attach({10, 10}, one);
    server_->attach({10, 11}, two);
    two.consume(branches(1, 1));
  }
  TailReader reader;
  const auto everybody = [](pid_t) { return true; };
  server_->tell_ends([](ThreadId id) { return id.tid == 10; }, everybody);
  auto items = read_all(client, reader);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(tail_line(items[1]), "11 ended\n");
  server_->tell_ends([](ThreadId id) { return id.tid == 10; }, everybody);  // Only once.
  server_->tell_ends([](ThreadId) { return false; }, [](pid_t) { return false; });
  items = read_all(client, reader);
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[0].news, TailNews::kThreadEnded);
  EXPECT_EQ(items[0].tid, 10);
  EXPECT_EQ(items[1].news, TailNews::kProcessEnded);
  EXPECT_EQ(items[1].pid, 10);
  EXPECT_EQ(tail_line(items[1]), "");
}

TEST_F(TailTest, TheServerEndsWhenAllHaveTheirs) {
  decoder::TraceHub hub;
  const auto slow = connect();
  const std::uint64_t sent = overrun(hub);
  std::vector<std::uint8_t> bytes;
  std::thread reading{[&] {
    std::vector<std::uint8_t> some(std::size_t{1} << 20U);
    for (;;) {
      const ssize_t count = ::recv(slow.get(), some.data(), some.size(), 0);
      if (count <= 0) return;
      bytes.insert(bytes.end(), some.begin(), some.begin() + count);
    }
  }};
  constexpr int kPatienceMs = 60'000;
  server_->finish(kPatienceMs);
  server_.reset();
  reading.join();
  TailReader reader;
  const auto items = reader.add(bytes);
  ASSERT_GT(items.size(), 2U);
  EXPECT_EQ(items.back().news, TailNews::kServerEnded);
  EXPECT_EQ(items.size() - 2 + items[items.size() - 2].lost, sent);
}

TEST_F(TailTest, WhoTakesNothingIsNotWaitedFor) {
  decoder::TraceHub hub;
  const auto stuck = connect();
  overrun(hub);
  server_->finish(1);
  server_.reset();
  std::vector<std::uint8_t> bytes(std::size_t{32} << 20U);
  std::size_t got = 0;
  for (ssize_t count = 1; count > 0; got += static_cast<std::size_t>(std::max<ssize_t>(count, 0))) {
    count = ::recv(stuck.get(), bytes.data() + got, bytes.size() - got, MSG_DONTWAIT);
  }
  TailReader reader;
  const auto items = reader.add(std::span{bytes}.first(got));
  ASSERT_FALSE(items.empty());
  EXPECT_TRUE(items.back().record);  // No final frame is sent.
}

TEST_F(TailTest, SaysWhyNobodyAnswers) {
  EXPECT_EQ(explain_tail_path("/etc", ECONNREFUSED), "cannot connect to /etc: it is not a socket");
  EXPECT_EQ(explain_tail_path(path_, ECONNREFUSED),
            "cannot connect to " + path_ + ": no server listens there; has it ended?");
  EXPECT_EQ(explain_tail_path("/nonexistent", ENOENT),
            "cannot connect to /nonexistent: No such file or directory");
}

TEST(TailReader, SaysWhatAGapIs) {
  TailReader::Item item{.tid = 7, .record = decoder::gap(decoder::GapReason::kOverflow, {}, {})};
  EXPECT_EQ(tail_line(item), "7 gap -> 0x0: branches were lost here\n");
}

TEST(TailReader, TakesBytesOneByOneAndRefusesOthers) {
  std::vector<std::uint8_t> bytes(kTailGreeting.begin(), kTailGreeting.end());
  bytes.resize(bytes.size() + kTailFrameBytes + kTailRecordBytes);
  bytes[12] = 7;  // tid
  bytes[16] = 1;  // count
  TailReader reader;
  std::size_t items = 0;
  for (const std::uint8_t byte : bytes) items += reader.add({&byte, 1}).size();
  EXPECT_EQ(items, 1U);
  TailReader other;
  EXPECT_TRUE(other.add(std::vector<std::uint8_t>(20, 'x')).empty());
  EXPECT_TRUE(other.broken());
}

/// Returns a branch, a branch after a loss, a gap, and the news of an end.
std::vector<TailReader::Item> some_items() {
  const Record branch = decoder::branch(TraceeAddr{0x401136}, TraceeAddr{0x7f0000401150});
  const Record gap = decoder::gap(decoder::GapReason::kOverflow, {}, TraceeAddr{0x10});
  return {{.pid = 12, .tid = 34, .record = branch},
          {.pid = 12, .tid = 34, .lost = 5, .record = branch},
          {.pid = 12, .tid = 34, .record = gap},
          {.pid = 12, .tid = 35, .record = branch},
          {.pid = 12, .tid = 35, .news = TailNews::kThreadEnded}};
}

TEST(TailWriter, HasTheColumnsOfPerfScript) {
  TailWriter writer{TailFormat::kPerfScript};
  for (const auto& item : some_items()) writer.add(item);
  EXPECT_EQ(writer.take(),
            "   12/34               401136 =>     7f0000401150\n"
            "# 34 5 records lost here: too slow\n"
            "   12/34               401136 =>     7f0000401150\n"
            "# 34 gap -> 0x10: branches were lost here\n"
            "   12/35               401136 =>     7f0000401150\n"
            "# 35 ended\n");
  EXPECT_EQ(writer.take(), "");
}

TEST(TailWriter, WhatIsRawIsReadAgain) {
  TailWriter words{TailFormat::kText};
  TailWriter writer{TailFormat::kRaw};
  std::string raw;
  for (int i = 0; i < 2; ++i) {
    for (const auto& item : some_items()) {
      words.add(item);
      writer.add(item);
    }
    raw += writer.take();
  }
  const std::vector<std::uint8_t> bytes{raw.begin(), raw.end()};
  const std::string text = words.take();
  EXPECT_EQ(tail_file_text(bytes).value_or(""), text);
  EXPECT_EQ(decode_text(bytes, {}).value_or(""), text);
  const auto cut = tail_file_text(std::span{bytes}.first(bytes.size() - 1));
  ASSERT_TRUE(cut);
  EXPECT_NE(cut->find("the file ends within a record"), std::string::npos);
  EXPECT_FALSE(tail_file_text({}));
}

}  // namespace
}  // namespace backtrail::server
