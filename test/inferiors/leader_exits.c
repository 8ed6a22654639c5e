/* The main thread ends when the other one runs, which continues and traps. rax = address of
 * `value`. */
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

static volatile long value = 0x1122334455667788;
static pthread_t leader;

static void* run(void* unused) {
  (void)unused;
  pthread_join(leader, 0);
  __asm__ volatile("int3" : : "a"(&value) : "memory");
  return 0;
}

int main(int argc, char** argv) {
  (void)argv;
  pthread_t thread;
  leader = pthread_self();
  pthread_create(&thread, 0, run, 0);
  if (argc > 1) __asm__ volatile("int3");
  pthread_exit(0);
}

// SPDX-License-Identifier: Apache-2.0
