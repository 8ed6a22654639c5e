// Prints "ready" and runs until a debugger sets `go_on`; then prints and exits with 3. An argument
// adds that many threads.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

volatile int go_on;
volatile long turns;
static pthread_barrier_t started;

static void wait_outside(void) {
  while (!go_on) {
    ++turns;
    usleep(1000);
  }
}

static void* run(void* unused) {
  (void)unused;
  pthread_barrier_wait(&started);
  wait_outside();
  return NULL;
}

int main(int argc, char** argv) {
  int threads = argc > 1 ? atoi(argv[1]) : 0;
  pthread_t* ids = calloc((size_t)threads + 1, sizeof *ids);
  pthread_barrier_init(&started, NULL, (unsigned)threads + 1);
  for (int i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, run, NULL);
  pthread_barrier_wait(&started);
  puts("ready");
  fflush(stdout);
  wait_outside();
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  puts("survived");
  free(ids);
  return 3;
}

// SPDX-License-Identifier: Apache-2.0
