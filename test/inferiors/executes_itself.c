// Executes itself all the time, until it is killed or two minutes are over. The argument says which
// thread does it: "thread" (the second one; the leader waits), "leader" (another one waits) or
// "third" (the leader and the second one wait).
#include <pthread.h>
#include <string.h>
#include <unistd.h>

static char** arguments;

static void* execute(void* unused) {
  (void)unused;
  execv("/proc/self/exe", arguments);
  _exit(1);
}

static void* wait_for_ever(void* unused) {
  for (;;) pause();
  return unused;
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc != 2 && argc != 3) return 2;
  if (argc == 2) alarm(120);
  char* again[] = {argv[0], argv[1], "again", 0};
  arguments = again;
  if (strcmp(argv[1], "thread") != 0) pthread_create(&thread, 0, wait_for_ever, 0);
  if (strcmp(argv[1], "leader") == 0) execute(0);
  pthread_create(&thread, 0, execute, 0);
  pthread_join(thread, 0);
  return 2;
}

// SPDX-License-Identifier: Apache-2.0
