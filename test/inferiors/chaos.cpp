// SPDX-License-Identifier: Apache-2.0
// Does at random what a debugger has to follow: threads that begin and end, forks, vforks, programs
// executed, signals. The order of the draws depends on the seed alone, their interleaving does not.
//
//   chaos SEED SECONDS fork|vfork [GENERATION]: ends by itself after SECONDS, and so does all that
//   it
//                                               started; with `fork` it makes no vfork.
#include <atomic>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <random>
#include <string>
#include <system_error>
#include <thread>

#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kMostThreads = 8;
constexpr int kMostGenerations = 3;

std::atomic<int> threads{0};
std::atomic<long> handled{0};
volatile long worked = 0;
Clock::time_point the_end;
int generation = 0;
bool vforks = true;

bool over() {
  return Clock::now() >= the_end;
}

int seconds_left() {
  return static_cast<int>(
             std::chrono::duration_cast<std::chrono::seconds>(the_end - Clock::now()).count()) +
         1;
}

}  // namespace

extern "C" {

void on_signal(int /*signal*/) {
  ++handled;
}

__attribute__((noinline)) void leaf(int rounds) {
  for (int i = 0; i < rounds; ++i) worked = worked + i;
}

__attribute__((noinline)) void work(int rounds) {
  leaf(rounds);
}

/// For calls made by gdb.
__attribute__((noinline)) int twice(int x) {
  return 2 * x;
}

}  // extern "C"

namespace {

void wait_for(pid_t child) {
  while (child > 0 && ::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
  }
}

void act(unsigned seed);

/// Children end with whoever made them, should they be forgotten.
void live_shortly() {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  ::alarm(static_cast<unsigned>(seconds_left() + 1));
}

void fork_one(unsigned seed) {
  const pid_t child = ::fork();
  if (child == 0) {
    live_shortly();
    work(static_cast<int>(seed % 5000));
    ::_exit(static_cast<int>(seed % 3));
  }
  wait_for(child);
}

void execute(unsigned seed) {
  const std::string word = std::to_string(seed);
  const std::string time = std::to_string(seconds_left());
  const std::string next = std::to_string(generation + 1);
  ::execl("/proc/self/exe", "chaos", word.c_str(), time.c_str(), vforks ? "vfork" : "fork",
          next.c_str(), nullptr);
}

void vfork_one(unsigned seed) {
  const pid_t child = ::vfork();
  if (child == 0) {
    if (seed % 2 == 0) ::_exit(0);
    ::execl("/bin/true", "true", nullptr);
    ::_exit(1);
  }
  wait_for(child);
}

void start_thread(unsigned seed) {
  if (++threads > kMostThreads) {
    --threads;
    return;
  }
  const auto body = [seed] {
    std::mt19937 random{seed};
    const auto steps = random() % 40;
    for (unsigned i = 0; i < steps && !over(); ++i) act(static_cast<unsigned>(random()));
    --threads;
  };
  try {
    std::thread{body}.detach();
  } catch (const std::system_error&) {
    --threads;  // too many at the moment
  }
}

void act(unsigned seed) {
  switch (seed % 16) {
    case 0:
    case 1:
      return start_thread(seed / 16);
    case 2:
      return fork_one(seed / 16);
    case 3:
      return vforks ? vfork_one(seed / 16) : fork_one(seed / 16);
    case 4:
      ::raise(SIGUSR1);
      return;
    case 5:
      ::kill(::getpid(), SIGUSR2);
      return;
    case 6:
      std::this_thread::sleep_for(std::chrono::milliseconds{seed / 16 % 20});
      return;
    case 7:
      if (seed / 16 % 24 == 0 && generation < kMostGenerations) execute(seed / 16);
      return;
    default:
      return work(static_cast<int>(seed / 16 % 20000));
  }
}

}  // namespace

int main(int argc, char** argv) {
  const unsigned seed = argc > 1 ? static_cast<unsigned>(std::strtoul(argv[1], nullptr, 10)) : 1;
  the_end = Clock::now() + std::chrono::seconds{argc > 2 ? std::atoi(argv[2]) : 10};
  vforks = argc > 3 && std::string{argv[3]} == "vfork";
  generation = argc > 4 ? std::atoi(argv[4]) : 0;
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  ::sigaction(SIGUSR1, &action, nullptr);
  ::sigaction(SIGUSR2, &action, nullptr);
  ::alarm(static_cast<unsigned>(seconds_left() + 2));
  std::mt19937 random{seed};
  while (!over()) act(static_cast<unsigned>(random()));
  return 0;
}
