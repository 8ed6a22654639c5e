// Four threads: each computes in work() with its own number, then all meet at a barrier.
#include <pthread.h>
#include <stdio.h>
#include <unistd.h>

enum { kThreads = 4 };
static pthread_barrier_t started, worked, over;
long results[kThreads];
__thread int own_number = -1;

int leaf(int n) {
  return n * 2;
}

long work(int number) {
  long sum = 0;
  for (int i = 0; i <= number; ++i) sum += leaf(number);
  return sum;
}

void work_done(int number) {
  results[number] += 1;
}

static void* run(void* argument) {
  int number = (int)(long)argument;
  own_number = number;
  pthread_barrier_wait(&started);
  results[number] = work(number);
  work_done(number);
  pthread_barrier_wait(&worked);
  pthread_barrier_wait(&over);
  return NULL;
}

/// For debuggers, which let a thread continue here.
void exit_all(void) {
  _exit(6);
}

void everyone_started(void) {}
void everyone_worked(void) {}
void everyone_left(void) {}

int main(void) {
  pthread_t ids[kThreads];
  pthread_barrier_init(&started, NULL, kThreads + 1);
  pthread_barrier_init(&worked, NULL, kThreads + 1);
  pthread_barrier_init(&over, NULL, kThreads + 1);
  for (long i = 0; i < kThreads; ++i) pthread_create(&ids[i], NULL, run, (void*)i);
  everyone_started();
  pthread_barrier_wait(&started);
  pthread_barrier_wait(&worked);
  everyone_worked();
  pthread_barrier_wait(&over);
  for (int i = 0; i < kThreads; ++i) pthread_join(ids[i], NULL);
  everyone_left();
  for (int i = 0; i < kThreads; ++i) printf("%ld ", results[i]);
  puts("joined");
  fflush(stdout);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
