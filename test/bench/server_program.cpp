// SPDX-License-Identifier: Apache-2.0
// The program that server.py debugs. The first argument chooses what it does.
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <thread>
#include <vector>

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

volatile long sum;
char* buffer;

// The benchmark names these lines: keep the marks.
__attribute__((noinline)) void loop(long count) {
  for (long i = 0; i < count; ++i) sum = sum + i;  // LOOP
  for (long i = 0; i < count; ++i) {
    sum = sum + i;  // UNTIL
  }
  sum = 0;
}

__attribute__((noinline)) void visit(long i) {
  sum = sum + i;  // VISIT
}

__attribute__((noinline)) void ready() {
  asm volatile("");  // READY
}

void start_threads(int count) {
  for (int i = 0; i < count; ++i) {
    std::thread{[] {
      for (;;) ::pause();
    }}.detach();
  }
}

int main(int argc, char** argv) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const char* what = argc > 1 ? argv[1] : "";
  const int count = argc > 2 ? std::atoi(argv[2]) : 0;
  if (std::strcmp(what, "loop") == 0) {
    ready();
    loop(count);
  } else if (std::strcmp(what, "visits") == 0) {
    ready();
    for (int i = 0; i < count; ++i) visit(i);
  } else if (std::strcmp(what, "memory") == 0) {
    buffer = new char[static_cast<std::size_t>(count) << 20];
    std::memset(buffer, 7, static_cast<std::size_t>(count) << 20);
    ready();
  } else if (std::strcmp(what, "threads") == 0) {
    start_threads(count);
    ready();
    for (int i = 0; i < 1000; ++i) visit(i);
  } else if (std::strcmp(what, "wait") == 0) {
    start_threads(count);
    (void)!::write(STDOUT_FILENO, "ready\n", 6);
    for (;;) ::pause();
  } else if (std::strcmp(what, "forks") == 0) {
    ready();
    for (int i = 0; i < count; ++i) {
      const pid_t child = ::fork();
      if (child == 0) ::_exit(0);
      ::waitpid(child, nullptr, 0);
    }
  }
  return 0;
}
