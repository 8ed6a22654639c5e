// Errors that a sanitizer finds, and code that it accepts; built with one sanitizer.
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <thread>

#include <sys/wait.h>
#include <unistd.h>

#ifdef __SANITIZE_ADDRESS__
#define CHECKS_LEAKS
#include <sanitizer/lsan_interface.h>
#endif

int* volatile kept;
volatile int sink;
int shared;

/// The two threads' order is the same in each run, but no synchronization guarantees it.
static void race() {
  std::atomic<bool> first{false};
  std::thread one{[&] {
    shared = 1;
    first.store(true, std::memory_order_relaxed);
  }};
  while (!first.load(std::memory_order_relaxed)) std::this_thread::yield();
  shared = 2;
  one.join();
}

/// Threads that wait for ever, each with the only pointer to a block on its stack: no leak.
static void hold(int threads) {
  std::atomic<int> holding{0};
  for (int i = 0; i < threads; ++i) {
    std::thread{[&] {
      int* volatile held = new int[4];
      held[0] = holding.fetch_add(1) + 1;
      for (;;) pause();
    }}.detach();
  }
  while (holding != threads) std::this_thread::yield();
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  const int number = argc > 2 ? std::atoi(argv[2]) : 0;
  std::printf("%s\n", how);
  std::fflush(stdout);
  if (!std::strcmp(how, "use-after-free")) {
    kept = new int[4];
    delete[] kept;
    sink = kept[number];
  }
  if (!std::strcmp(how, "leak")) {
    kept = new int[4];
    kept = nullptr;
  }
  if (!std::strcmp(how, "overflow")) {
    sink = 0x7fffffff;
    sink = sink + argc;
  }
  if (!std::strcmp(how, "null")) {
    kept = nullptr;
    sink = *kept;
  }
  if (!std::strcmp(how, "race")) race();
  if (!std::strcmp(how, "thread")) {
    std::thread other{[] { sink = 1; }};
    other.join();
  }
#ifdef CHECKS_LEAKS
  // Runs before the check that the sanitizer makes by itself.
  if (!std::strcmp(how, "checks")) {
    std::atexit([] { __lsan_do_recoverable_leak_check(); });
    std::atexit([] { __lsan_do_recoverable_leak_check(); });
  }
#endif
  if (!std::strcmp(how, "child")) {
    if (fork() == 0) return 0;
    wait(nullptr);
  }
  if (!std::strcmp(how, "hold")) {
    hold(number);
    return 0;
  }
  return number;
}

// SPDX-License-Identifier: Apache-2.0
