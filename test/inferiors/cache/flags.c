// Flags that are pushed and popped: no tracer's trap flag may appear in them.
#include <pthread.h>
#include <stdio.h>

#define TRAP_FLAG 0x100

static int leaks;
static int rounds = 3000;

static void* push_and_pop(void* unused) {
  (void)unused;
  for (int i = 0; i < rounds; ++i) {
    unsigned long before, after;
    __asm__ volatile(
        "sub $128, %%rsp\n\tpushfq\n\tpopfq\n\tpushfq\n\tpop %0\n\tpush %0\n\tpopfq\n\t"
        "pushfq\n\tpop %1\n\tadd $128, %%rsp"
        : "=&r"(before), "=r"(after)
        :
        : "cc", "memory");
    if (((before | after) & TRAP_FLAG) != 0) __atomic_add_fetch(&leaks, 1, __ATOMIC_RELAXED);
  }
  return NULL;
}

int main(int argc, char** argv) {
  (void)argv;
  pthread_t threads[3];
  if (argc > 1) {
    rounds = 100;
    push_and_pop(NULL);
    return leaks != 0;
  }
  for (int i = 0; i < 3; ++i) pthread_create(&threads[i], NULL, push_and_pop, NULL);
  push_and_pop(NULL);
  for (int i = 0; i < 3; ++i) pthread_join(threads[i], NULL);
  printf("%d leaks\n", leaks);
  return leaks != 0;
}

// SPDX-License-Identifier: Apache-2.0
