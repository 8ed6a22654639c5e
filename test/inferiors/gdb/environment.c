// Prints its arguments, working directory and the variable BT_VALUE.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

__thread int thread_local_value = 11;

void reported(void) {}

int main(int argc, char** argv) {
  char folder[4096];
  const char* value = getenv("BT_VALUE");
  for (int i = 1; i < argc; ++i) printf("argument [%s]\n", argv[i]);
  printf("folder [%s]\n", getcwd(folder, sizeof folder) ? folder : "?");
  printf("value [%s]\n", value ? value : "(unset)");
  fflush(stdout);
  errno = 17;
  thread_local_value += 1;
  reported();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
