// Works, then forks children that do the same work at the same time while a thread continues.
// prefork CHILDREN: exits with 0 if all results are equal.
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kNumbers = 200 };

static atomic_int over;

static int compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}

static int work(void) {
  int numbers[kNumbers];
  for (int i = 0; i < kNumbers; ++i) numbers[i] = i * 7919 % 1009;
  qsort(numbers, kNumbers, sizeof numbers[0], compare);
  long sum = 0;
  for (int i = 0; i < kNumbers; ++i) {
    char text[64];
    snprintf(text, sizeof text, "%d %.3f", numbers[i], i / 7.0);
    char* end = NULL;
    sum = sum * 31 + strtol(text, &end, 10) + (long)(strtod(end, NULL) * 1000);
  }
  return (int)(sum & 0x7f);
}

static void* go_on(void* unused) {
  (void)unused;
  while (!atomic_load(&over)) work();
  return NULL;
}

int main(int argc, char** argv) {
  const int children = argc > 1 ? atoi(argv[1]) : 0;
  const int expected = work();
  pthread_t thread;
  if (pthread_create(&thread, NULL, go_on, NULL) != 0) return 2;
  for (int i = 0; i < children; ++i) {
    const pid_t child = fork();
    if (child < 0) return 3;
    if (child == 0) _exit(work());
  }
  int same = 0;
  int status = 0;
  while (wait(&status) > 0) same += WIFEXITED(status) && WEXITSTATUS(status) == expected;
  atomic_store(&over, 1);
  pthread_join(thread, NULL);
  return same == children ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
