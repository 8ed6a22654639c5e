// Handles SIGTRAP and SIGUSR1, and has a second thread that starts with every signal blocked.
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

volatile int traps, wishes;

void on_trap(int number) {
  (void)number;
  ++traps;
}

void on_wish(int number) {
  (void)number;
  ++wishes;
}

void* work(void* argument) {
  return argument;
}

int main(void) {
  signal(SIGTRAP, on_trap);
  signal(SIGUSR1, on_wish);
  pthread_t id;
  pthread_create(&id, NULL, work, NULL);
  pthread_join(id, NULL);
  return traps * 10 + wishes;
}

// SPDX-License-Identifier: Apache-2.0
