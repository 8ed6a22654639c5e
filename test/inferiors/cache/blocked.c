// Waits in a read() that SIGUSR1 interrupts and that is restarted after the signal's handler.
#include <signal.h>
#include <unistd.h>

static int ends[2];
static volatile int done;

static void wake(int number) {
  (void)number;
  if (write(ends[1], "x", 1) != 1) _exit(2);
}

__attribute__((noinline)) void read_done(void) {
  done = 1;
}

int main(void) {
  const struct sigaction action = {.sa_handler = wake, .sa_flags = SA_RESTART};
  char byte = 0;
  if (pipe(ends) != 0 || sigaction(SIGUSR1, &action, NULL) != 0) return 2;
  if (read(ends[0], &byte, 1) != 1) return 3;
  read_done();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
