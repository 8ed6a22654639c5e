/* The first process of a PID namespace raises a signal that would end any other process, and
 * continues with a second thread. Exits with 77 if namespaces are forbidden. */
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static int pipe_ends[2];

static void* read_one(void* unused) {
  char byte;
  return read(pipe_ends[0], &byte, 1) == 1 ? unused : NULL;
}

static int run(void) {
  pthread_t thread;
  void* result = NULL;
  if (pipe(pipe_ends) != 0) return 1;
  if (pthread_create(&thread, NULL, read_one, pipe_ends) != 0) return 1;
  raise(SIGTERM);
  if (write(pipe_ends[1], "", 1) != 1) return 1;
  pthread_join(thread, &result);
  return result == NULL ? 1 : 5;
}

int main(void) {
  int status = 0;
  if (unshare(CLONE_NEWPID) != 0) return 77;
  const pid_t child = fork();
  if (child == 0) _exit(run());
  if (waitpid(child, &status, 0) != child || !WIFEXITED(status)) return 1;
  return WEXITSTATUS(status);
}

// SPDX-License-Identifier: Apache-2.0
