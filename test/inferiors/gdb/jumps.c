// longjmp over several frames, system calls, a signal handler in the middle of a function.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <unistd.h>

static jmp_buf back;
volatile int jumped, handled, written;

void deeper(int levels) {
  if (levels == 0) longjmp(back, 1);
  deeper(levels - 1);
}

void landed(void) {
  jumped = 1;
}

void jump_far(void) {
  if (setjmp(back) == 0) {
    deeper(3);
  } else {
    landed();
  }
}

void on_signal(int number) {
  (void)number;
  handled = 1;
}

void signal_self(void) {
  raise(SIGUSR1);
  handled += 1;
}

void call_system(void) {
  written = (int)write(-1, "x", 1);
  getppid();
}

void finished(void) {}

int main(void) {
  signal(SIGUSR1, on_signal);
  jump_far();
  signal_self();
  call_system();
  finished();
  printf("jumped %d handled %d\n", jumped, handled);
  fflush(stdout);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
