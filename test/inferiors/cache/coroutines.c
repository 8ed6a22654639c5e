// Two stacks that pass control to each other, and back to main.
#include <stdio.h>
#include <ucontext.h>

static ucontext_t home, first, second;
static char stacks[2][65536];
static int steps;

static void ping(void) {
  for (int i = 0; i < 20; ++i) {
    steps += 1;
    swapcontext(&first, &second);
  }
}

static void pong(void) {
  for (;;) {
    steps += 100;
    swapcontext(&second, &first);
  }
}

int main(void) {
  getcontext(&first);
  first.uc_stack.ss_sp = stacks[0];
  first.uc_stack.ss_size = sizeof stacks[0];
  first.uc_link = &home;
  makecontext(&first, ping, 0);
  getcontext(&second);
  second.uc_stack.ss_sp = stacks[1];
  second.uc_stack.ss_size = sizeof stacks[1];
  makecontext(&second, pong, 0);
  swapcontext(&home, &first);
  printf("steps %d\n", steps);
  return steps == 2020 ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
