// Sixteen threads, or as many as the third argument says, start and end. One crashes at a moment
// that the first argument chooses, while others are being created, run, or end. With no second
// argument none crashes.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

int* volatile nowhere;
volatile int sink;
constexpr long kRounds = 300;

static void work(unsigned seed, long crash_at) {
  std::map<std::string, long> counts;
  for (long i = 0; i < kRounds; ++i) {
    seed = seed * 1103515245U + 12345U;
    counts[std::to_string(seed % 97)] += i;
    try {
      if (seed % 13 == 0) throw std::runtime_error("unlucky");
    } catch (const std::exception&) {
      sink = sink + 1;
    }
    if (i == crash_at) sink = *nowhere;
  }
}

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? static_cast<unsigned>(std::atoi(argv[1])) : 1;
  const long crash_at = argc > 2 ? static_cast<long>(seed * 7919U % kRounds) : -1;
  const unsigned count = argc > 3 ? static_cast<unsigned>(std::atoi(argv[3])) : 16;
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i) {
    threads.emplace_back(work, seed + i, i == seed % count ? crash_at : -1);
  }
  for (std::thread& thread : threads) thread.join();
  std::puts("all right");
}

// SPDX-License-Identifier: Apache-2.0
