// Makes processes in less usual ways.
// births fork: the child ends with 5, and this process waits for it.
// births copy-waits: clone(CLONE_VFORK) without CLONE_VM. The child, which has memory of its own,
// ends with 5.
// births two-vforks: of two vforks at once the second one ends first. The first one's child then
// calls in_child(), and this process ends with 0 if that child ended with 5.
// births slow-vfork: the vfork's child ends with 5 after SIGUSR2.
// births vfork-execs: the vfork's child executes /bin/true.
// births vfork-in-clone: a process that shares the memory makes a vfork.
// births maker-execs: a process that shares the memory calls in_child() after this one has become
// the next form.
// births awaits PID: waits for the child and ends with its status.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kStackBytes = 1 << 16 };
static volatile int calls;
static volatile int second_may_begin;
static int pipe_ends[2];

__attribute__((noinline)) void in_child(void) {
  ++calls;
}
__attribute__((noinline)) void in_parent(int status) {
  __asm__ volatile("" : : "r"(status));
}

static int status_of(pid_t child) {
  int status = 0;
  if (waitpid(child, &status, __WALL) != child) return 99;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int finish(pid_t child) {
  const int status = child < 0 ? 98 : status_of(child);
  in_parent(status);
  return status;
}

static void* vfork_first(void* result) {
  const pid_t child = vfork();
  if (child == 0) {
    char byte = 0;
    second_may_begin = 1;
    (void)!read(pipe_ends[0], &byte, 1);
    in_child();
    _exit(5);
  }
  *(int*)result = status_of(child);
  return 0;
}

static int two_vforks(void) {
  pthread_t thread;
  int status = 0;
  if (pthread_create(&thread, 0, vfork_first, &status) != 0) return 3;
  while (!second_may_begin) usleep(100);
  const pid_t child = vfork();
  if (child == 0) _exit(6);
  (void)!write(pipe_ends[1], "x", 1);
  pthread_join(thread, 0);
  in_parent(status);
  return status == 5 ? 0 : status;
}

static int slow_vfork(void) {
  int signal = 0;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGUSR2);
  sigprocmask(SIG_BLOCK, &set, 0);
  const pid_t child = vfork();
  if (child == 0) {
    sigwait(&set, &signal);
    _exit(5);
  }
  return finish(child);
}

static int vfork_execs(void) {
  const pid_t child = vfork();
  if (child == 0) {
    execl("/bin/true", "true", NULL);
    _exit(97);
  }
  return finish(child);
}

static int vforks(void* unused) {
  (void)unused;
  const pid_t child = vfork();
  if (child == 0) _exit(6);
  const int status = status_of(child);
  in_child();
  return status;
}

static int outlives(void* unused) {
  (void)unused;
  char byte = 0;
  // This process has descriptors of its own; the maker's exec closes the last other one.
  close(pipe_ends[1]);
  while (read(pipe_ends[0], &byte, 1) > 0) continue;
  in_child();
  return 5;
}

static pid_t made(int (*run)(void*)) {
  char* stack = malloc(kStackBytes);
  return clone(run, stack + kStackBytes, CLONE_VM | SIGCHLD, NULL);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "fork";
  if (pipe2(pipe_ends, O_CLOEXEC) != 0) return 2;
  if (strcmp(how, "awaits") == 0) return status_of(atoi(argv[2]));
  if (strcmp(how, "two-vforks") == 0) return two_vforks();
  if (strcmp(how, "slow-vfork") == 0) return slow_vfork();
  if (strcmp(how, "vfork-execs") == 0) return vfork_execs();
  if (strcmp(how, "vfork-in-clone") == 0) return finish(made(vforks));
  if (strcmp(how, "maker-execs") == 0) {
    char id[16];
    snprintf(id, sizeof id, "%d", made(outlives));
    execl("/proc/self/exe", "births", "awaits", id, NULL);
    return 97;
  }
  const long flags = strcmp(how, "copy-waits") == 0 ? CLONE_VFORK | SIGCHLD : SIGCHLD;
  const pid_t child = (pid_t)syscall(SYS_clone, flags, 0, 0, 0, 0);
  if (child == 0) {
    in_child();
    _exit(5);
  }
  return finish(child);
}

// SPDX-License-Identifier: Apache-2.0
