// Handlers that block every signal make system calls, in a program that handles SIGTRAP.
#include <signal.h>
#include <stddef.h>

static volatile int trapped, handled;

static int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void on_trap(int number) {
  (void)number;
  ++trapped;
}

static void on_signal(int number) {
  (void)number;
  sigset_t pending;
  sigpending(&pending);
  ++handled;
}

int main(void) {
  struct sigaction action = {.sa_handler = on_trap};
  sigaction(SIGTRAP, &action, NULL);
  action.sa_handler = on_signal;
  sigfillset(&action.sa_mask);
  sigaction(SIGUSR1, &action, NULL);
  fib(5);
  raise(SIGINT);
  for (int i = 0; i < 20; ++i) {
    fib(12);
    raise(SIGUSR1);
  }
  raise(SIGINT);
  struct sigaction now;
  sigaction(SIGTRAP, NULL, &now);
  return trapped != 0 || handled != 20 || now.sa_handler != on_trap;
}

// SPDX-License-Identifier: Apache-2.0
