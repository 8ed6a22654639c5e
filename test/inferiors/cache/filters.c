// Programs with seccomp filters of their own. Each exits with 0 if everything it saw was right.
//   alone     a filter with every kind of answer, for itself
//   family    the same, and for threads, children and a program that it executes
//   everybody a filter for all threads, which are busy, that kills for tgkill
//   masked    a filter like that of everybody, with SIGSEGV blocked and then ignored
//   place     a filter that kills for calls from anywhere but the program's own code
//   fails     filters that the kernel refuses
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define LOAD(member) BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, member))
#define ANSWER(what) BPF_STMT(BPF_RET | BPF_K, (what))
#define AT(number, what) BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (number), 0, 1), ANSWER(what)

#define CHECK(what)                         \
  do {                                      \
    if (!(what)) _exit(__LINE__ % 250 + 2); \
  } while (0)

__attribute__((noinline)) static int fib(int n) {
  return n < 2 ? n : fib(n - 1) + fib(n - 2);
}

static int install(struct sock_filter* filter, size_t length, unsigned flags) {
  struct sock_fprog program = {(unsigned short)length, filter};
  CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  return (int)syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, flags, &program);
}

static void* volatile seen_place;
static volatile int seen_number;

static void on_sigsys(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  seen_place = info->si_call_addr;
  seen_number = info->si_syscall;
}

/// Makes a system call and stores the address after it in `place`.
static long call_here(long number, long first, void** place) {
  long result = number;
  __asm__ volatile("lea 1f(%%rip), %1\n\tsyscall\n1:"
                   : "+a"(result), "=&b"(*place)
                   : "D"(first)
                   : "rcx", "r11", "memory");
  return result;
}

static void look(void) {
  for (int round = 0; round < 3; ++round) {
    CHECK(fib(12) == 144);
    void* place = NULL;
    CHECK(call_here(SYS_getppid, 0, &place) == -77);
    // The filter decides by the argument.
    CHECK(call_here(SYS_dup, 1000, &place) == -EBADF);
    CHECK(call_here(SYS_dup, 1001, &place) == -78);
    seen_place = NULL;
    struct utsname name;
    (void)call_here(SYS_uname, (long)&name, &place);
    CHECK(seen_place == place && seen_number == SYS_uname);
    CHECK(getpid() > 0);
  }
}

/// Makes the call through the C library, which loads the call's number just before it.
static void ask_for_name(int trapped) {
  enum { kNear = 64 };
  for (int round = 0; round < 3; ++round) {
    struct utsname name;
    seen_place = NULL;
    (void)uname(&name);
    CHECK((seen_place != NULL) == trapped);
    CHECK(!trapped || (uintptr_t)seen_place - (uintptr_t)uname < kNear);
  }
}

static void filter_of_every_kind(void) {
  struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
  CHECK(sigaction(SIGSYS, &action, NULL) == 0);
  struct sock_filter filter[] = {
      LOAD(arch),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, AUDIT_ARCH_X86_64, 1, 0),
      ANSWER(SECCOMP_RET_KILL_PROCESS),
      LOAD(nr),
      AT(SYS_getppid, SECCOMP_RET_ERRNO | 77),
      AT(SYS_uname, SECCOMP_RET_TRAP),
      AT(SYS_getpgrp, SECCOMP_RET_KILL_PROCESS),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_dup, 0, 3),
      LOAD(args[0]),
      AT(1001, SECCOMP_RET_ERRNO | 78),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  CHECK(install(filter, LENGTH(filter), 0) == 0);
}

static void* look_in_thread(void* unused) {
  look();
  return unused;
}

static void wait_for(pid_t child) {
  int status = 0;
  CHECK(child > 0 && waitpid(child, &status, 0) == child);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void family(char* self) {
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, look_in_thread, NULL) == 0);
  CHECK(pthread_join(thread, NULL) == 0);
  pid_t child = fork();
  if (child == 0) {
    look();
    _exit(0);
  }
  wait_for(child);
  child = vfork();
  if (child == 0) {
    execl(self, self, "executed", NULL);
    _exit(1);
  }
  wait_for(child);
  // A call that the filter kills for ends the child.
  child = fork();
  if (child == 0) {
    (void)syscall(SYS_getpgrp);
    _exit(0);
  }
  int status = 0;
  CHECK(waitpid(child, &status, 0) == child && WIFSIGNALED(status) && WTERMSIG(status) == SIGSYS);
}

static volatile int end;
static volatile unsigned long rounds[4];

/// Keeps a thread busy. All but one wait now and then, too.
static void* be_busy(void* which) {
  while (!end) {
    (void)fib(10);
    (void)getppid();
    ++rounds[(uintptr_t)which];
    if (which != NULL) usleep(200);
  }
  return NULL;
}

static void everybody(void) {
  pthread_t threads[LENGTH(rounds)];
  for (uintptr_t i = 0; i < LENGTH(threads); ++i) {
    CHECK(pthread_create(&threads[i], NULL, be_busy, (void*)i) == 0);
  }
  for (size_t i = 0; i < LENGTH(threads); ++i) {
    while (rounds[i] < 20) usleep(100);
  }
  struct sock_filter filter[] = {
      LOAD(nr),
      AT(SYS_tgkill, SECCOMP_RET_KILL_PROCESS),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  CHECK(install(filter, LENGTH(filter), SECCOMP_FILTER_FLAG_TSYNC) == 0);
  for (size_t i = 0; i < LENGTH(threads); ++i) {
    const unsigned long before = rounds[i];
    while (rounds[i] < before + 2) usleep(100);
  }
  end = 1;
  for (size_t i = 0; i < LENGTH(threads); ++i) CHECK(pthread_join(threads[i], NULL) == 0);
}

static void masked(void) {
  const struct sigaction ignore = {.sa_handler = SIG_IGN};
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  CHECK(sigprocmask(SIG_BLOCK, &segv, NULL) == 0);
  struct sock_filter filter[] = {
      LOAD(nr),
      AT(SYS_tgkill, SECCOMP_RET_KILL_PROCESS),
      ANSWER(SECCOMP_RET_ALLOW),
  };
  CHECK(install(filter, LENGTH(filter), 0) == 0);
  CHECK(fib(15) == 610);
  struct sigaction action;
  sigset_t mask;
  CHECK(sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
  CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && sigismember(&mask, SIGSEGV));
  CHECK(sigaction(SIGSEGV, &ignore, NULL) == 0);
  CHECK(sigprocmask(SIG_UNBLOCK, &segv, NULL) == 0);
  CHECK(fib(16) == 987);
  CHECK(kill(getpid(), SIGSEGV) == 0);  // ignored
  CHECK(sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == SIG_IGN);
  CHECK(sigprocmask(SIG_BLOCK, NULL, &mask) == 0 && !sigismember(&mask, SIGSEGV));
}

/// The addresses include the statically linked C library.
static void by_place(void) {
  extern char __executable_start[];
  extern char etext[];
  const uint32_t high = (uint32_t)((uintptr_t)__executable_start >> 32);
  struct sock_filter filter[] = {
      LOAD(instruction_pointer) /* the low half */,
      BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)(uintptr_t)__executable_start, 0, 4),
      BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (uint32_t)(uintptr_t)etext, 3, 0),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 0, 1),
      ANSWER(SECCOMP_RET_ALLOW),
      ANSWER(SECCOMP_RET_KILL_PROCESS),
  };
  CHECK(install(filter, LENGTH(filter), 0) == 0);
}

static void fails(void) {
  struct sock_filter bad[] = {LOAD(nr)};
  CHECK(install(bad, LENGTH(bad), 0) == -1 && errno == EINVAL);
  CHECK(install(bad, 0, 0) == -1 && errno == EINVAL);
  struct sock_filter good[] = {ANSWER(SECCOMP_RET_ALLOW)};
  CHECK(install(good, LENGTH(good), 0x8000) == -1 && errno == EINVAL);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, NULL) == -1 && errno == EFAULT);
  CHECK(syscall(SYS_seccomp, SECCOMP_SET_MODE_STRICT, 1, NULL) == -1 && errno == EINVAL);
  CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 8) == -1 && errno == EFAULT);
}

int main(int argc, char** argv) {
  const char* mode = argc > 1 ? argv[1] : "alone";
  CHECK(fib(12) == 144);
  if (strcmp(mode, "executed") == 0) {
    struct sigaction action = {.sa_sigaction = on_sigsys, .sa_flags = SA_SIGINFO};
    CHECK(sigaction(SIGSYS, &action, NULL) == 0);
    look();
  } else if (strcmp(mode, "everybody") == 0) {
    everybody();
  } else if (strcmp(mode, "masked") == 0) {
    masked();
  } else if (strcmp(mode, "place") == 0) {
    by_place();
  } else if (strcmp(mode, "fails") == 0) {
    fails();
  } else {
    ask_for_name(0);
    filter_of_every_kind();
    ask_for_name(1);
    look();
    if (strcmp(mode, "family") == 0) family(argv[0]);
  }
  CHECK(fib(15) == 610);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
