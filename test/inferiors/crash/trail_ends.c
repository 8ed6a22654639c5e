// SPDX-License-Identifier: Apache-2.0
// Dies where the past of some values ends: `half` in the middle of a string instruction, `call`
// after a system call that no table has, `handler` after the return from a signal handler.
#define _GNU_SOURCE
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

static long kept;

static void handler(int number) {
  (void)number;
}

static void store_half(void) {
  char* pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(pages + 4096, 4096, PROT_NONE);
  void* at = pages + 4000;
  long count = 200;
  __asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(7) : "memory");
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "";
  signal(SIGUSR1, handler);
  kept = argc + 5;
  if (strcmp(mode, "half") == 0) store_half();
  if (strcmp(mode, "call") == 0) syscall(SYS_getpriority, 0, 0);
  if (strcmp(mode, "handler") == 0) kill(getpid(), SIGUSR1);
  return *(volatile int*)16 + (int)kept;
}
