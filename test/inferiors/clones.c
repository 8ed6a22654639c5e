// Processes that share this one's memory, made by clone(2) itself.
// clones like-fork ...: they send SIGCHLD at their end, as forked children do.
// clones first: a clone ends before its maker. clones last: it ends after its maker, with 9.
// clones exec PROGRAM: it becomes another program, and this one ends when that has ended.
// clones fault: it raises SIGSEGV.
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kStackBytes = 1 << 16 };
volatile int in_clone_calls;
static const char* how;
static char** program;
static int ends[2];

__attribute__((noinline)) void in_clone(void) {
  ++in_clone_calls;
}

__attribute__((noinline)) void in_maker(int calls) {
  __asm__ volatile("" : : "r"(calls));
}

static int run(void* unused) {
  (void)unused;
  char byte = 0;
  in_clone();
  if (strcmp(how, "exec") == 0) execv(program[0], program);
  if (strcmp(how, "fault") == 0) *(volatile int*)8 = 1;
  if (strcmp(how, "last") != 0) return 7;
  // The maker's end closes the other end of the pipe.
  close(ends[1]);
  while (read(ends[0], &byte, 1) > 0) continue;
  in_clone();
  return 9;
}

int main(int argc, char** argv) {
  const int as_fork = argc > 1 && strcmp(argv[1], "like-fork") == 0;
  argc -= as_fork;
  argv += as_fork;
  if (argc < 2 || pipe(ends) != 0) return 2;
  how = argv[1];
  program = argv + 2;
  char* stack = malloc(kStackBytes);
  const pid_t made = clone(run, stack + kStackBytes, CLONE_VM | (as_fork ? SIGCHLD : 0), NULL);
  if (made < 0) return 3;
  if (strcmp(how, "last") == 0) {
    while (in_clone_calls == 0) usleep(100);
    in_maker(in_clone_calls);
    _exit(4);
  }
  int status = 0;
  if (waitpid(made, &status, __WALL) != made) return 5;
  in_maker(in_clone_calls);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

// SPDX-License-Identifier: Apache-2.0
