// Ends as its argument says: a number is an exit status; "abort", "segv", "kill" are signals.
#include <signal.h>
#include <stdlib.h>
#include <string.h>

volatile int* nowhere;

void crash(void) {
  *nowhere = 1;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "0";
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "segv") == 0) crash();
  if (strcmp(how, "kill") == 0) raise(SIGKILL);
  return atoi(how);
}

// SPDX-License-Identifier: Apache-2.0
