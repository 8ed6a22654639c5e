// Threads that compute, contend, start and end, load a library, map memory and end the program.
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kThreads = 3 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static long total;
static atomic_long handled;
static int rounds = 20;

static int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static void on_signal(int number) {
  (void)number;
  atomic_fetch_add(&handled, 1);
}

static void* short_lived(void* argument) {
  return (void*)(long)fib((int)(long)argument);
}

static int compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}

static void* work(void* argument) {
  long number = (long)argument;
  for (int i = 0; i < rounds; ++i) {
    pthread_t helper;
    if (pthread_create(&helper, NULL, short_lived, (void*)10L) != 0) abort();
    int values[64];
    for (int k = 0; k < 64; ++k) values[k] = (int)((k * 37 + number * 11 + i) % 64);
    qsort(values, 64, sizeof *values, compare);
    char* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memset(page, (int)number, 8192);
    mprotect(page, 4096, PROT_READ);
    long sum = page[5000];
    munmap(page, 8192);
    void* result = NULL;
    pthread_join(helper, &result);
    pthread_mutex_lock(&lock);
    total += sum + (long)result + values[63];
    pthread_mutex_unlock(&lock);
    raise(SIGUSR1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  if (argc > 1) rounds = atoi(argv[1]);
  signal(SIGUSR1, on_signal);
  pthread_t ids[kThreads];
  for (long i = 0; i < kThreads; ++i) pthread_create(&ids[i], NULL, work, (void*)i);
  for (int i = 0; i < kThreads; ++i) pthread_join(ids[i], NULL);
  printf("total %ld handled %ld\n", total, (long)handled);
  return total == (3 + (55 + 63) * 3L) * rounds && handled == 3L * rounds ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
