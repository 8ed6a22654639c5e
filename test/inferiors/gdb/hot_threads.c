// hot_threads THREADS CALLS: each thread calls hot() CALLS times (0: for ever) while the first one
// raises SIGUSR1. calls_done() is called at the end.
// hot_threads sleep: the other thread sleeps in the system call at blocking_call until this one has
// counted far enough.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kMost = 16, kFarEnough = 5000 };
static volatile long calls[kMost];
static volatile int running;
static long wanted;
static int ends[2];

__attribute__((noinline)) void hot(long number) {
  calls[number]++;
}

__attribute__((noinline)) void calls_done(void) {
  __asm__ volatile("");
}

static void* run(void* argument) {
  for (long i = 0; wanted == 0 || i < wanted; ++i) hot((long)argument);
  __atomic_sub_fetch(&running, 1, __ATOMIC_SEQ_CST);
  return NULL;
}

static void nothing(int signal) {
  (void)signal;
}

static void* sleeper(void* argument) {
  char byte = 0;
  long result = 0;  // read(ends[0], &byte, 1)
  __asm__ volatile(".globl blocking_call\nblocking_call: syscall"
                   : "=a"(result)
                   : "0"(0L), "D"((long)ends[0]), "S"(&byte), "d"(1L)
                   : "rcx", "r11", "memory");
  return result == 1 ? argument : NULL;
}

static int sleep_and_count(void) {
  pthread_t other;
  void* result = NULL;
  if (pipe(ends) != 0 || pthread_create(&other, NULL, sleeper, ends) != 0) return 2;
  for (long i = 0; i < kFarEnough; ++i) calls[0] += i;
  if (write(ends[1], "x", 1) != 1) return 3;
  pthread_join(other, &result);
  return result == NULL;
}

int main(int argc, char** argv) {
  if (argc > 1 && strcmp(argv[1], "sleep") == 0) return sleep_and_count();
  pthread_t ids[kMost];
  const int threads = argc > 1 ? atoi(argv[1]) % kMost : 1;
  wanted = argc > 2 ? atol(argv[2]) : 0;
  running = threads;
  signal(SIGUSR1, nothing);
  for (long i = 0; i < threads; ++i) pthread_create(&ids[i], NULL, run, (void*)i);
  while (running != 0) raise(SIGUSR1);
  for (int i = 0; i < threads; ++i) pthread_join(ids[i], NULL);
  calls_done();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
