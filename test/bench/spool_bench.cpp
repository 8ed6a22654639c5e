// Checks that a client slower than the program loses nothing while its records wait on disk.
//
// usage: spool_bench [SECONDS [MEGABYTES_A_SECOND [FOLDER]]]
//
// Records come at that rate (default 200) by the clock; the client takes half of it. At the end the
// client takes the rest, and the numbers of all records are checked.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "server/cli/tail.hpp"
#include "server/target/tail_server.hpp"

namespace {

using namespace backtrail;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kBatch = 4096;

struct Taken {
  std::uint64_t records = 0;
  std::uint64_t lost = 0;
  bool in_order = true;
};

double since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

/// Reads until the server closes, at most `rate` bytes a second while `hurry` is false.
void take(int socket, double rate, const std::atomic<bool>& hurry, std::uint64_t all,
          Taken& taken) {
  server::TailReader reader;
  std::vector<std::uint8_t> buffer(std::size_t{256} << 10U);
  const auto begin = Clock::now();
  double bytes = 0;
  while (taken.records + taken.lost < all) {
    const ssize_t count = ::read(socket, buffer.data(), buffer.size());
    if (count <= 0) return;
    bytes += static_cast<double>(count);
    for (const auto& item : reader.add(std::span{buffer}.first(static_cast<std::size_t>(count)))) {
      taken.lost += item.lost;
      if (!item.record) continue;
      if (item.record->from.value() != taken.records + taken.lost) taken.in_order = false;
      ++taken.records;
    }
    while (!hurry && bytes > rate * since(begin)) {
      std::this_thread::sleep_for(std::chrono::milliseconds{1});
    }
  }
}

int connect_to(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  const int fd = ::socket(AF_UNIX, SOCK_STREAM, 0);
  // NOLINTNEXTLINE(*-reinterpret-cast)
  return ::connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 ? fd : -1;
}

}  // namespace

int main(int argc, char** argv) {
  const double length = argc > 1 ? std::strtod(argv[1], nullptr) : 10;
  const double rate = (argc > 2 ? std::strtod(argv[2], nullptr) : 200) * 1e6;
  const std::string folder = argc > 3 ? argv[3] : "/var/tmp";
  const std::string path = fmt::format("/tmp/spool_bench.{}", ::getpid());
  auto server = server::TailServer::listen(
      {.path = path, .spool_folder = folder, .spool_bytes = std::uint64_t{64} << 30U});
  const int socket = server ? connect_to(path) : -1;
  if (socket < 0) {
    fmt::print(stderr, "spool_bench: no socket or no spool\n");
    return 1;
  }
  decoder::TraceHub hub;
  (*server)->poll();
  (*server)->attach({1, 1}, hub);
  const auto all =
      static_cast<std::uint64_t>(length * rate / sizeof(decoder::Record)) / kBatch * kBatch;
  Taken taken;
  std::atomic<bool> hurry{false};
  std::thread client{[&] { take(socket, rate / 2, hurry, all, taken); }};
  const auto begin = Clock::now();
  double late = 0;
  std::vector<decoder::Record> batch(kBatch);
  for (std::uint64_t sent = 0; sent < all; sent += kBatch) {
    const double due = static_cast<double>(sent * sizeof(decoder::Record)) / rate;
    late = std::max(late, since(begin) - due);
    while (since(begin) < due) (*server)->poll();
    for (std::size_t i = 0; i < kBatch; ++i) {
      batch[i] = decoder::branch(TraceeAddr{sent + i}, TraceeAddr{sent + i + 1});
    }
    hub.consume(batch);
  }
  const double took = since(begin);
  hurry = true;
  std::atomic<bool> done{false};
  std::thread waiter{[&] {
    client.join();
    done = true;
  }};
  while (!done) (*server)->poll();
  waiter.join();
  const double bytes = static_cast<double>(all) * sizeof(decoder::Record);
  fmt::print("{:.0f} MB of records in {:.1f} s: {:.0f} MB/s, at most {:.2f} s late\n", bytes / 1e6,
             took, bytes / 1e6 / took, late);
  fmt::print("{} of {} records arrived, {} lost, {}; all there after {:.1f} s\n", taken.records,
             all, taken.lost, taken.in_order ? "in order" : "NOT IN ORDER", since(begin));
  ::close(socket);
  ::unlink(path.c_str());
  return taken.lost == 0 && taken.in_order && taken.records == all ? 0 : 2;
}

// SPDX-License-Identifier: Apache-2.0
