// A thread other than the first executes another program, which exits with 7, once somebody writes
// to the FIFO argv[1]. The first thread is at a SIGUSR1 until then.
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

static char** arguments;

static void* run(void* unused) {
  (void)unused;
  char byte = 0;
  const int fifo = open(arguments[1], O_RDONLY);
  if (read(fifo, &byte, 1) == 1) execl(arguments[0], arguments[0], (char*)0);
  _exit(1);
}

int main(int argc, char** argv) {
  if (argc < 2) return 7;
  arguments = argv;
  pthread_t thread;
  pthread_create(&thread, 0, run, 0);
  raise(SIGUSR1);
  pthread_join(thread, 0);
  return 2;
}

// SPDX-License-Identifier: Apache-2.0
