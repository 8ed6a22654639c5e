#include "server/cli/tail.hpp"

#include <array>
#include <cstring>
#include <filesystem>

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <gtest/gtest.h>

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
  /// Everything that lies ready; the server sends what waits in between.
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

  /// Lets the client that has connected listen, and sends more than memory holds for it, numbered
  /// from 0 on. @return How many records.
  std::uint64_t overrun(decoder::TraceHub& hub) {
    constexpr std::uint64_t kBatch = 4096;
    constexpr std::uint64_t kAll = 400 * kBatch;
    server_->poll();
    server_->attach({1, 1}, hub);
    for (std::uint64_t sent = 0; sent < kAll; sent += kBatch) hub.consume(branches(sent, kBatch));
    return kAll;
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
      ASSERT_EQ(items[i].record.from.value(), 100 + i);
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
  std::uint64_t seen = read_all(slow, reader).size();
  ASSERT_LT(seen, sent);
  hub.consume(branches(sent, 1));
  const auto last = read_all(slow, reader);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].lost + seen, sent);
  EXPECT_NE(tail_line(last[0]).find("records lost here"), std::string::npos);
}

TEST_F(TailTest, ASlowClientLosesNothingWithASpool) {
  listen({.path = path_, .spool_folder = testing::TempDir(), .spool_bytes = 1ULL << 30U});
  decoder::TraceHub hub;
  const auto slow = connect();
  const std::uint64_t sent = overrun(hub);
  TailReader reader;
  std::uint64_t seen = 0;
  for (const auto& item : read_all(slow, reader)) {
    ASSERT_EQ(item.record.from.value(), seen++);
    ASSERT_EQ(item.lost, 0U);
  }
  EXPECT_EQ(seen, sent);
  // And then it keeps up again.
  hub.consume(branches(sent, 1));
  EXPECT_EQ(read_all(slow, reader).size(), 1U);
}

TEST_F(TailTest, AFullSpoolLosesAndCounts) {
  listen({.path = path_, .spool_folder = testing::TempDir(), .spool_bytes = 4ULL << 20U});
  decoder::TraceHub hub;
  const auto slow = connect();
  const std::uint64_t sent = overrun(hub);
  TailReader reader;
  const std::uint64_t seen = read_all(slow, reader).size();
  ASSERT_LT(seen, sent);
  ASSERT_GT(seen * kTailRecordBytes, 16ULL << 20U);
  hub.consume(branches(sent, 1));
  const auto last = read_all(slow, reader);
  ASSERT_EQ(last.size(), 1U);
  EXPECT_EQ(last[0].lost + seen, sent);
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

}  // namespace
}  // namespace backtrail::server
