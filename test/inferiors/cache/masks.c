// Blocked and ignored signals stay so, and handlers stay installed, with and without a tracer.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

static volatile int trapped, wrong;

static void on_trap(int number) {
  (void)number;
  ++trapped;
}

static void expect(int ok, int line) {
  if (!ok) {
    wrong = line;
    fprintf(stderr, "line %d\n", line);
  }
}

static int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void check(int number, void (*handler)(int), int blocked, int line) {
  struct sigaction now;
  sigset_t mask;
  sigaction(number, NULL, &now);
  sigprocmask(SIG_SETMASK, NULL, &mask);
  expect(now.sa_handler == handler, line);
  expect(sigismember(&mask, number) == blocked, line);
}

static void work(void) {
  sigset_t pending;
  for (int i = 0; i < 3; ++i) {
    sigpending(&pending);
    getppid();
    fib(6);
  }
}

int main(int argc, char** argv) {
  (void)argv;
  const int numbers[] = {SIGTRAP, SIGSEGV, SIGSTOP};
  for (int i = 0; i < 2; ++i) {
    const int number = numbers[i];
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    struct sigaction handled = {.sa_handler = on_trap};
    sigaction(number, &handled, NULL);
    work();
    check(number, on_trap, 0, __LINE__);
    sigprocmask(SIG_BLOCK, &one, NULL);
    work();
    check(number, on_trap, 1, __LINE__);
    raise(number);
    expect(trapped == 0, __LINE__);
    if (argc > 1) fib(29);
    check(number, on_trap, 1, __LINE__);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    expect(trapped == 1, __LINE__);
    check(number, on_trap, 0, __LINE__);
    signal(number, SIG_IGN);
    work();
    raise(number);
    expect(trapped == 1, __LINE__);
    if (argc > 1) fib(29);
    check(number, SIG_IGN, 0, __LINE__);
    sigprocmask(SIG_BLOCK, &one, NULL);
    work();
    check(number, SIG_IGN, 1, __LINE__);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
    trapped = 0;
    handled.sa_flags = 0;
    sigaction(number, &handled, NULL);
    sigset_t all, old;
    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, &old);
    if (argc > 1) fib(27);
    check(number, on_trap, 1, __LINE__);
    expect(sigprocmask(7, &old, NULL) == -1, __LINE__);
    expect(syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, &all, NULL, 4) == -1, __LINE__);
    expect(syscall(SYS_rt_sigprocmask, SIG_UNBLOCK, (void*)16, NULL, 8) == -1, __LINE__);
    if (argc > 1) fib(27);
    check(number, on_trap, 1, __LINE__);
    sigprocmask(SIG_SETMASK, &old, NULL);
    if (argc > 1) fib(27);
    check(number, on_trap, 0, __LINE__);
  }
  printf("masks %s\n", wrong ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
