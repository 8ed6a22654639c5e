// lives_on [fork | exec]: work to go back in, then more to run live.
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static volatile int total;
static volatile int handled;

static int deeper(int left) {
  if (left == 0) return 0;
  return deeper(left - 1) + 1;
}

static int add_up(const int* numbers, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += numbers[i];
    total = sum;
  }
  return sum;
}

static void on_signal(int number) {
  handled += number == SIGUSR1;
}

static void worked(void) {
  __asm__ volatile("");
}

static void rest(int sum) {
  printf("the sum is %d\n", sum);
  fflush(stdout);
}

static void make_child(void) {
  const pid_t child = fork();
  if (child == 0) _exit(total);
  waitpid(child, NULL, 0);
}

int main(int argc, char** argv) {
  int numbers[] = {1, 2, 3, 4};
  signal(SIGUSR1, on_signal);
  raise(SIGUSR1);
  const int depth = deeper(5);
  if (argc > 1 && strcmp(argv[1], "fork") == 0) make_child();
  const int sum = add_up(numbers, 4);
  worked();
  rest(sum + depth);
  if (argc > 1 && strcmp(argv[1], "exec") == 0) execl(argv[0], argv[0], NULL);
  return 0;
}
// SPDX-License-Identifier: Apache-2.0
