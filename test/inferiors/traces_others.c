// A small debugger: traces children that ask for it, attaches to one that does not, and to one that
// shares its memory until it executes another program.

#include <signal.h>
#include <stdio.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

static int system_calls_of(pid_t child) {
  int status = 0;
  int stops = 0;
  while (waitpid(child, &status, 0) == child && WIFSTOPPED(status)) {
    const int signal = WSTOPSIG(status);
    ++stops;
    ptrace(PTRACE_SYSCALL, child, NULL, signal == SIGTRAP ? 0L : (long)signal);
  }
  return WIFEXITED(status) && WEXITSTATUS(status) == 7 ? stops : -1;
}

static void trace_one_that_asks(void) {
  const pid_t child = fork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(1);
    execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
    _exit(1);
  }
  printf("traced to its end: %d\n", system_calls_of(child) > 10);
}

static void attach_to_one(void) {
  const pid_t child = fork();
  if (child == 0) {
    for (;;) pause();
  }
  int status = 0;
  struct user_regs_struct registers = {0};
  const long attached = ptrace(PTRACE_ATTACH, child, NULL, NULL);
  waitpid(child, &status, 0);
  ptrace(PTRACE_GETREGS, child, NULL, &registers);
  printf("attached: %ld, stopped: %d, its registers: %d\n", attached, WIFSTOPPED(status),
         registers.rip != 0);
  ptrace(PTRACE_DETACH, child, NULL, NULL);
  kill(child, SIGKILL);
  waitpid(child, &status, 0);
  printf("ended by %d\n", WIFSIGNALED(status) ? WTERMSIG(status) : 0);
}

static void trace_one_that_shares_memory(void) {
  const pid_t child = vfork();
  if (child == 0) {
    if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(1);
    execl("/bin/sh", "sh", "-c", "exit 7", (char*)NULL);
    _exit(1);
  }
  printf("traced behind vfork: %d\n", system_calls_of(child) > 10);
}

int main(void) {
  trace_one_that_asks();
  attach_to_one();
  trace_one_that_shares_memory();
  fflush(stdout);
  return 5;
}

// SPDX-License-Identifier: Apache-2.0
