// Many threads that exist at the same time.
#include <pthread.h>
#include <stdlib.h>

enum { kThreads = 300, kStackBytes = 65536 };
static pthread_barrier_t all_there;

static void* run(void* argument) {
  pthread_barrier_wait(&all_there);
  return argument;
}

int main(void) {
  pthread_t threads[kThreads];
  pthread_attr_t attributes;
  pthread_barrier_init(&all_there, NULL, kThreads + 1);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStackBytes);
  for (int i = 0; i < kThreads; ++i) {
    if (pthread_create(&threads[i], &attributes, run, (void*)(long)i) != 0) return 1;
  }
  pthread_barrier_wait(&all_there);
  for (int i = 0; i < kThreads; ++i) {
    void* result = NULL;
    pthread_join(threads[i], &result);
    if (result != (void*)(long)i) return 2;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
