// SPDX-License-Identifier: Apache-2.0
// A process that shares its memory with another one, without being a thread of it, ends or executes
// another program; then the first one crashes. Prints where the recorder had mapped memory for the
// other one, and how much of that is still mapped. Arguments:
//
//     ends | executes    what the other one does
//     told | blocks      whether the first one blocks the signal at its end
//     maps | forbids     map data there before the crash; let a seccomp filter refuse munmap()
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../recorders_mappings.h"

enum { kStackBytes = 65536, kPage = 4096 };

// Both processes use these.
static struct mappings before;
static struct mappings during;
static struct mappings after;
static char stack[kStackBytes] __attribute__((aligned(16)));
static int* volatile nowhere;

static int be(void* how) {
  read_mappings(&during);
  if (strcmp(how, "executes") == 0) execl("/bin/true", "true", NULL);
  _exit(0);
}

static int map_data(char* at) {
  char* own =
      mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (own != at) return 0;
  strcpy(own, "the program's own");
  return 1;
}

static int forbid_unmapping(void) {
  struct sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_munmap, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const struct sock_fprog filter = {sizeof steps / sizeof *steps, steps};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0;
}

int main(int count, char** arguments) {
  if (count < 3) return 2;
  const int blocks = strcmp(arguments[2], "blocks") == 0;
  sigset_t end;
  sigemptyset(&end);
  sigaddset(&end, SIGCHLD);
  if (blocks) sigprocmask(SIG_BLOCK, &end, NULL);
  const int maps = count > 3 && strcmp(arguments[3], "maps") == 0;
  if (count > 3 && strcmp(arguments[3], "forbids") == 0 && !forbid_unmapping()) return 5;
  read_mappings(&before);
  const pid_t child = clone(be, stack + kStackBytes, CLONE_VM | SIGCHLD, arguments[1]);
  if (child < 0 || waitpid(child, NULL, __WALL) != child) return 3;
  read_mappings(&after);
  int left = 0;
  for (int i = 0; i < during.count; ++i) {
    char* at = during.all[i].begin;
    if (holds(&before, at)) continue;
    if (maps && !map_data(at)) return 4;
    left += holds(&after, at);
    printf("at %p\n", (void*)at);
  }
  printf("left %d\n", left);
  fflush(stdout);
  *nowhere = 1;
  return 0;
}
