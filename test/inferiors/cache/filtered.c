// Executes a program under a seccomp filter, like a container. "container" refuses the calls that
// Docker's filter refuses and a recorder would use; "kills" kills the program for a call that
// recording needs; "reads" kills it for opening files for writing too.
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define AT(number, verdict) \
  BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), BPF_STMT(BPF_RET | BPF_K, (verdict))

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  const unsigned refused = SECCOMP_RET_ERRNO | EPERM;
  const unsigned other = strcmp(argv[1], "container") == 0 ? refused : SECCOMP_RET_KILL_PROCESS;
  const unsigned opens = strcmp(argv[1], "reads") == 0 ? SECCOMP_RET_KILL_PROCESS : 0;
  struct sock_filter filter[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      AT(SYS_personality, refused),
      AT(SYS_perf_event_open, refused),
      AT(other == refused ? SYS_userfaultfd : SYS_memfd_create, other),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_RDWR | O_WRONLY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, opens != 0 ? opens : SECCOMP_RET_ALLOW),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 3;
  if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 4;
  execvp(argv[2], argv + 2);
  return 5;
}

// SPDX-License-Identifier: Apache-2.0
