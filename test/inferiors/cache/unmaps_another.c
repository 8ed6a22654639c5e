// SPDX-License-Identifier: Apache-2.0
// Unmaps what the recorder has mapped for another process in the same memory, which runs meanwhile.
// Exits with 0 if there was something, and if the other one is not harmed.
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../recorders_mappings.h"

enum { kStackBytes = 65536, kRuns = 1000000 };

// Both processes use these.
static struct mappings before;
static struct mappings during;
static char stack[kStackBytes] __attribute__((aligned(16)));
static volatile int is_ready;
static volatile int is_done;
static volatile long sum;

static int be(void* unused) {
  (void)unused;
  read_mappings(&during);
  is_ready = 1;
  while (!is_done) ++sum;
  for (int i = 0; i < kRuns; ++i) sum += i;
  _exit(0);
}

int main(void) {
  read_mappings(&before);
  const pid_t child = clone(be, stack + kStackBytes, CLONE_VM | SIGCHLD, NULL);
  if (child < 0) return 2;
  while (!is_ready) sched_yield();
  int unmapped = 0;
  for (int i = 0; i < during.count; ++i) {
    const struct mapping at = during.all[i];
    if (holds(&before, at.begin)) continue;
    if (munmap(at.begin, (size_t)(at.end - at.begin)) != 0) return 3;
    ++unmapped;
  }
  is_done = 1;
  int status = -1;
  if (waitpid(child, &status, __WALL) != child || status != 0) return 4;
  return unmapped != 0 ? 0 : 5;
}
