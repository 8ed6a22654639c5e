/* A thread-local variable in two threads; the second traps. rax = address of its copy. */
#include <pthread.h>

__thread long per_thread = 5;

static void* run(void* unused) {
  per_thread = 77;
  __asm__ volatile("int3" : : "a"(&per_thread) : "memory");
  return unused;
}

int main(void) {
  pthread_t thread;
  per_thread = 66;
  pthread_create(&thread, 0, run, 0);
  pthread_join(thread, 0);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
