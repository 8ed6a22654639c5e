/* Signal handlers on the stack and on an alternate stack, for faults and for sent signals. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>

#include "begin.h"

static volatile int seen;
static sigjmp_buf out;

static void count(int number) {
  seen += number;
}

static void skip(int number, siginfo_t* info, void* context) {
  (void)info;
  ucontext_t* registers = context;
  /* The handler changes a register that the program uses afterwards. */
  registers->uc_mcontext.gregs[REG_RBX] += 1;
  seen += number;
}

static void leave(int number) {
  seen += number;
  siglongjmp(out, 1);
}

int main(void) {
  static char stack[65536];
  stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
  BEGIN();
  sigaltstack(&own, NULL);
  struct sigaction action = {.sa_handler = count};
  sigaction(SIGUSR1, &action, NULL);
  action.sa_flags = SA_ONSTACK;
  sigaction(SIGUSR2, &action, NULL);
  action.sa_flags = SA_SIGINFO;
  action.sa_sigaction = skip;
  sigaction(SIGHUP, &action, NULL);
  action.sa_flags = 0;
  action.sa_handler = leave;
  sigaction(SIGSEGV, &action, NULL);
  int local = 3;
  for (int i = 0; i < 3; i++) {
    raise(SIGUSR1);
    local += seen;
    raise(SIGUSR2);
    raise(SIGHUP);
    if (sigsetjmp(out, 1) == 0) memset((void*)16, local, 64);
    local *= 3;
  }
  abort();
}

// SPDX-License-Identifier: Apache-2.0
