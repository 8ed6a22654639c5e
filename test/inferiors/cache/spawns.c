// Children by fork, vfork and posix_spawn, then exec from a thread, which replaces the whole
// process.
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static char* self;

static int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int result_of(pid_t child) {
  int status = 0;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static void* new_program(void* unused) {
  char* arguments[] = {self, "second", NULL};
  execv(self, arguments);
  return unused;
}

static void* end_all(void* unused) {
  (void)unused;
  printf("spawns right\n");
  fflush(stdout);
  exit(0);
}

static void* wait_for_ever(void* unused) {
  for (;;) pause();
  return unused;
}

int main(int argc, char** argv) {
  self = argv[0];
  pthread_t id;
  if (argc > 1 && strcmp(argv[1], "child") == 0) return fib(7);
  if (argc > 1 && strcmp(argv[1], "second") == 0) {
    pthread_create(&id, NULL, wait_for_ever, NULL);
    pthread_create(&id, NULL, end_all, NULL);
    pthread_join(id, NULL);
    return 1;
  }
  for (int i = 0; i < 3; ++i) {
    pid_t forked = fork();
    if (forked == 0) _exit(fib(6 + i));
    if (result_of(forked) != fib(6 + i)) return 2;
    pid_t vforked = vfork();
    if (vforked == 0) {
      char* arguments[] = {self, "child", NULL};
      execv(self, arguments);
      _exit(99);
    }
    if (result_of(vforked) != 13) return 3;
    pid_t spawned = 0;
    char* arguments[] = {self, "child", NULL};
    if (posix_spawn(&spawned, self, NULL, NULL, arguments, environ) != 0) return 4;
    if (result_of(spawned) != 13) return 5;
  }
  pthread_create(&id, NULL, wait_for_ever, NULL);
  pthread_create(&id, NULL, new_program, NULL);
  pthread_join(id, NULL);
  return 6;
}

// SPDX-License-Identifier: Apache-2.0
