// Its second thread executes the program, which then does so again, until it is killed or a minute
// is over.
#include <pthread.h>
#include <unistd.h>

static char** arguments;

static void* run(void* unused) {
  (void)unused;
  execv("/proc/self/exe", arguments);
  _exit(1);
}

int main(int argc, char** argv) {
  pthread_t thread;
  if (argc == 1) alarm(60);
  char* again[] = {argv[0], "again", 0};
  arguments = again;
  pthread_create(&thread, 0, run, 0);
  pthread_join(thread, 0);
  return 2;
}

// SPDX-License-Identifier: Apache-2.0
