// One thread calls here() and stays there; on request another thread executes a new program, which
// ends the first.
#include <pthread.h>
#include <sched.h>
#include <string.h>
#include <unistd.h>

volatile char go_on;
static char* self;

void here(void) {
  for (;;) pause();
}
static void* stay(void* unused) {
  here();
  return unused;
}
static void* renew(void* unused) {
  char* arguments[] = {self, "second", NULL};
  while (!go_on) sched_yield();
  execv(self, arguments);
  return unused;
}

int main(int argc, char** argv) {
  pthread_t id;
  self = argv[0];
  if (argc > 1 && strcmp(argv[1], "second") == 0) return 23;
  pthread_create(&id, NULL, stay, NULL);
  pthread_create(&id, NULL, renew, NULL);
  pthread_join(id, NULL);
  return 1;
}

// SPDX-License-Identifier: Apache-2.0
