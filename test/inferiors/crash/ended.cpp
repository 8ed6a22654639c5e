// Threads that end before the process does; one of them is the cause of the failure.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <future>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <pthread.h>

static int* shared = new int(5);
static int failures;

__attribute__((noinline)) static void spoil() {
  shared = nullptr;
}
__attribute__((noinline)) static int use() {
  return *shared;
}

/// Ends the thread but not the program, like test frameworks that run tests in threads.
__attribute__((noinline)) static void check_failed(const char* what) {
  std::fprintf(stderr, "check failed: %s\n", what);
  ++failures;
  pthread_exit(nullptr);
}
__attribute__((noinline)) static int half(int number) {
  if (number % 2 != 0) check_failed("number is even");
  return number / 2;
}
__attribute__((noinline)) static int third(int number) {
  if (number % 3 != 0) throw std::runtime_error{"not divisible"};
  return number / 3;
}

static int run_pool(int count, int bad) {
  std::vector<std::thread> pool;
  for (int i = 0; i < count; ++i) {
    pool.emplace_back([=] {
      volatile int result = half(i == bad ? 3 : 4);
      (void)result;
    });
    pool.back().join();  // One after the other, so that the newest one is certain.
  }
  return failures;
}

static int run_tasks(int count, int bad) {
  int caught = 0;
  for (int i = 0; i < count; ++i) {
    auto task = std::async(std::launch::async, third, i == bad ? 4 : 6);
    try {
      task.get();
    } catch (const std::exception&) {
      ++caught;
    }
  }
  return caught;
}

int main(int argc, char** argv) {
  const std::string how = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 6;
  if (how == "check") return run_pool(count, 2);
  if (how == "throw") return run_tasks(count, 2);
  std::thread other{[] {
    pthread_setname_np(pthread_self(), "spoiler");
    spoil();
  }};
  other.join();
  return use();
}

// SPDX-License-Identifier: Apache-2.0
