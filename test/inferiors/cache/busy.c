// Unpredictable branches, tens of millions of them, the same in each run. Calls mark() now and
// then, and done() at the end.
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

__attribute__((noinline)) static uint32_t odd(uint32_t value) {
  __asm__ volatile("");
  return value * 3 + 1;
}

__attribute__((noinline)) static uint32_t even(uint32_t value) {
  __asm__ volatile("");
  return value / 2 + 7;
}

__attribute__((noinline)) void mark(void) {
  __asm__ volatile("");
}

__attribute__((noinline)) void done(void) {
  __asm__ volatile("");
}

static uint32_t work(int marks) {
  uint32_t state = 1;
  uint32_t sum = 0;
  for (int i = 1; i <= 3000000; ++i) {
    state = state * 1664525U + 1013904223U;
    sum = (state >> 31) != 0 ? odd(sum ^ state) : even(sum + state);
    if (marks && i % 777777 == 0) mark();
  }
  if (marks) done();
  return sum;
}

static void* thread(void* argument) {
  (void)argument;
  return (void*)(uintptr_t)work(0);
}

enum { kMost = 8, kIdle = 60 };
static pthread_barrier_t barrier;

static void* idle(void* argument) {
  pthread_barrier_wait(&barrier);
  return argument;
}

// Starts many threads at once when all the work is done.
static int crowd(void) {
  pthread_t ids[kIdle];
  pthread_barrier_init(&barrier, NULL, kIdle);
  for (int i = 0; i < kIdle; ++i) {
    if (pthread_create(&ids[i], NULL, idle, NULL) != 0) return 1;
  }
  for (int i = 0; i < kIdle; ++i) pthread_join(ids[i], NULL);
  return 0;
}

// Refuses SIGSEGV, with which the recorder stops a thread at a full log.
static void refuse_segv(const char* how) {
  if (strcmp(how, "ignored") == 0) signal(SIGSEGV, SIG_IGN);
  if (strcmp(how, "blocked") != 0) return;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGSEGV);
  sigprocmask(SIG_BLOCK, &set, NULL);
}

// busy [OTHER THREADS [ignored|blocked|crowd]]
int main(int argc, char** argv) {
  pthread_t others[kMost];
  const int count = argc > 1 ? atoi(argv[1]) % (kMost + 1) : 0;
  if (argc > 2) refuse_segv(argv[2]);
  for (int i = 0; i < count; ++i) pthread_create(&others[i], NULL, thread, NULL);
  const uint32_t sum = work(1);
  int wrong = argc > 2 && strcmp(argv[2], "crowd") == 0 ? crowd() : 0;
  for (int i = 0; i < count; ++i) {
    void* result = NULL;
    pthread_join(others[i], &result);
    wrong |= (uint32_t)(uintptr_t)result != sum;
  }
  return wrong;
}

// SPDX-License-Identifier: Apache-2.0
