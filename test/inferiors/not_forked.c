// SPDX-License-Identifier: Apache-2.0
// Calls a function, keeps its page from children (MADV_DONTFORK), and forks. A child that calls the
// function gets a SIGSEGV.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kChildren = 3 };

__attribute__((noinline, aligned(4096), section(".text.alone"))) int alone(int number) {
  __asm__ volatile("" ::: "memory");
  return number + 1;
}

int main(void) {
  int sum = alone(1);
  char* page = (char*)((uintptr_t)alone / kPage * kPage);
  if (madvise(page, kPage, MADV_DONTFORK) != 0) return 2;
  for (int i = 0; i < kChildren; ++i) {
    const pid_t child = fork();
    if (child == 0) _exit(alone(1));
    int status = 0;
    if (child < 0 || waitpid(child, &status, 0) != child) return 3;
    printf("child %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : -WEXITSTATUS(status));
    sum = alone(sum);
  }
  return sum == kChildren + 2 ? 0 : 4;
}
