// Threads that start and end: many short ones, a few at a time.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

volatile int visits;

void visit(void) {
  __atomic_add_fetch(&visits, 1, __ATOMIC_SEQ_CST);
}

static void* brief(void* unused) {
  visit();
  return unused;
}

void between_rounds(int round) {
  (void)round;
}

int main(int argc, char** argv) {
  int rounds = argc > 1 ? atoi(argv[1]) : 25;
  for (int round = 0; round < rounds; ++round) {
    pthread_t ids[4];
    for (int i = 0; i < 4; ++i) pthread_create(&ids[i], NULL, brief, NULL);
    for (int i = 0; i < 4; ++i) pthread_join(ids[i], NULL);
    between_rounds(round);
  }
  printf("visits %d\n", visits);
  fflush(stdout);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
