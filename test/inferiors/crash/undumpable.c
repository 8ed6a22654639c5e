// Makes itself undumpable, and crashes.

#include <stddef.h>
#include <sys/prctl.h>

int main(void) {
  prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
  return *(volatile int*)NULL;
}

// SPDX-License-Identifier: Apache-2.0
