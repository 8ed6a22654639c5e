// Branches that nobody can foresee, tens of millions of them, the same in each run. Now and then
// mark() is called, and done() at last.
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

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

// busy [OTHER THREADS]
int main(int argc, char** argv) {
  enum { kMost = 8 };
  pthread_t others[kMost];
  const int count = argc > 1 ? atoi(argv[1]) % (kMost + 1) : 0;
  for (int i = 0; i < count; ++i) pthread_create(&others[i], NULL, thread, NULL);
  const uint32_t sum = work(1);
  int wrong = 0;
  for (int i = 0; i < count; ++i) {
    void* result = NULL;
    pthread_join(others[i], &result);
    wrong |= (uint32_t)(uintptr_t)result != sum;
  }
  return wrong;
}
