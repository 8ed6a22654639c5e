/* Works, waits, works, crashes; with an argument, waits very often first. */
#include <pthread.h>
#include <time.h>
#include <unistd.h>

static volatile long sum;

static __attribute__((noinline)) void work(void) {
  for (long i = 0; i < 2000; ++i) {
    sum += i;
    if ((sum & 64) != 0) sum ^= 3;
  }
}

static __attribute__((noinline)) void wait_long(void) {
  const struct timespec time = {0, 400000000};
  nanosleep(&time, 0);
}

static int there[2];
static int back[2];

static void* answer(void* unused) {
  char byte;
  while (read(there[0], &byte, 1) == 1) {
    if (write(back[1], &byte, 1) != 1) return unused;
  }
  return unused;
}

/* In each round this thread waits once, and the other one too. */
static void wait_often(void) {
  pthread_t other;
  char byte = 0;
  if (pipe(there) != 0 || pipe(back) != 0 || pthread_create(&other, 0, answer, 0) != 0) return;
  for (int i = 0; i < 20000; ++i) {
    if (write(there[1], &byte, 1) != 1 || read(back[0], &byte, 1) != 1) return;
  }
  close(there[1]);
  pthread_join(other, 0);
}

int main(int argc, char** argv) {
  (void)argv;
  if (argc > 1) wait_often();
  work();
  wait_long();
  work();
  *(volatile int*)0 = 1;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
