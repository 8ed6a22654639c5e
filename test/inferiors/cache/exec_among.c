// A thread executes the program again while other threads branch all the time.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

volatile long turns;

static void* branch(void* nothing) {
  for (;;) ++turns;
  return nothing;
}

static void* execute(void* left) {
  const int count = atoi(left);
  if (count == 0) _exit(0);
  char less[16];
  snprintf(less, sizeof less, "%d", count - 1);
  usleep(2000);
  execl("/proc/self/exe", "exec_among", less, NULL);
  _exit(1);
}

int main(int argc, char** argv) {
  if (argc != 2) return 2;
  pthread_t thread;
  for (int i = 0; i < 3; ++i) pthread_create(&thread, NULL, branch, NULL);
  pthread_create(&thread, NULL, execute, argv[1]);
  for (;;) pause();
}

// SPDX-License-Identifier: Apache-2.0
