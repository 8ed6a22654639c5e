// Signals that interrupt a call and a store, and handlers that return and jump away. Ends with 0.
#include <setjmp.h>
#include <signal.h>
#include <string.h>

static volatile int seen;
static sigjmp_buf back;

static void count(int number) {
  seen += number;
}

static void leave(int number) {
  seen += number;
  siglongjmp(back, 1);
}

int main(void) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_handler = count;
  sigaction(SIGUSR1, &action, NULL);
  action.sa_handler = leave;
  sigaction(SIGSEGV, &action, NULL);
  for (volatile int i = 0; i < 20; i++) {
    raise(SIGUSR1);
    if (sigsetjmp(back, 1) == 0) *(volatile int*)8 = i;
  }
  return seen != 20 * (SIGUSR1 + SIGSEGV);
}

// SPDX-License-Identifier: Apache-2.0
