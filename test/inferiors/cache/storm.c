// Signals in quick succession, or in large numbers.
//   timer KIND MICROSECONDS WORK   a timer of that period during WORK units of work
//   fault COUNT / raise COUNT      COUNT handled faults, or COUNT signals to itself
//   children COUNT                 COUNT children send a signal and end: both are heard of before
//                                  the wait for each child returns
//   sender WORK / queue WORK       a child sends signals without end, merged by the kernel or
//   queued,
//                                  during ten times WORK units of work
// Exits with 0 if all of it is done and nothing was wrong.
#define _GNU_SOURCE
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static volatile long handled, own, wrong, ended;

static void on_timer(int number) {
  if (number == SIGUSR1) ++own;
  ++handled;
}

static void on_child(int number) {
  (void)number;
  ++ended;
}

extern char the_load[];

static void on_fault(int number, siginfo_t* info, void* context) {
  ucontext_t* at = context;
  greg_t* regs = at->uc_mcontext.gregs;
  // Check the frame like an unwinder or a garbage collector.
  if (number != SIGSEGV || info->si_addr != (void*)64 || regs[REG_RIP] != (greg_t)the_load ||
      regs[REG_R10] != 10 || regs[REG_R11] != 11 || regs[REG_RCX] != 64 ||
      (regs[REG_CSGSFS] & 0xffff) != 0x33 || regs[REG_CR2] != 64) {
    ++wrong;
  }
  regs[REG_RIP] += 3;
  ++handled;
}

static void set_timer(const char* kind, long microseconds) {
  const struct itimerval every = {{0, microseconds}, {0, microseconds}};
  const int which[] = {ITIMER_REAL, ITIMER_VIRTUAL, ITIMER_PROF};
  const int numbers[] = {SIGALRM, SIGVTALRM, SIGPROF};
  const char* kinds[] = {"real", "virtual", "prof"};
  for (int i = 0; i < 3; ++i) {
    if (strcmp(kind, kinds[i]) != 0) continue;
    signal(numbers[i], on_timer);
    setitimer(which[i], &every, NULL);
    return;
  }
  struct sigevent event = {.sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGRTMIN + 3};
  const struct itimerspec times = {{0, microseconds * 1000}, {0, microseconds * 1000}};
  timer_t timer;
  signal(SIGRTMIN + 3, on_timer);
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) != 0 ||
      timer_settime(timer, 0, &times, NULL) != 0) {
    exit(2);
  }
}

static long do_work(long count) {
  volatile long sum = 0;
  for (long i = 0; i < count; ++i) sum += i;
  return sum;
}

static void fault(void) {
  __asm__ volatile(
      "mov $10, %%r10d\n mov $11, %%r11d\n mov $64, %%ecx\n"
      "the_load: mov (%%rcx), %%rax\n" ::
          : "rax", "rcx", "r10", "r11");
}

static void hear_of_children(long count) {
  signal(SIGUSR1, on_timer);
  signal(SIGCHLD, on_child);
  const pid_t self = getpid();
  for (long i = 0; i < count; ++i) {
    own = ended = 0;
    const pid_t child = fork();
    if (child == 0) {
      kill(self, SIGUSR1);
      _exit(0);
    }
    if (waitpid(child, NULL, 0) != child || own != 1 || ended != 1) ++wrong;
  }
}

/// Shared with the child that sends signals.
struct counts {
  volatile long sent;  // begun to send
  volatile long handled;
};
static struct counts* counts;
static volatile pid_t sender;
static volatile int inside;

static void on_sender(int number, siginfo_t* info, void* context) {
  (void)context;
  if (inside++ != 0 || info->si_pid != sender) ++wrong;
  // Queued signals come in their order, each once.
  if (number == SIGRTMIN && info->si_value.sival_int != counts->handled) ++wrong;
  ++counts->handled;
  --inside;
}

static void send_without_end(pid_t parent, int number) {
  while (getppid() == parent) {
    if (number == SIGRTMIN && counts->sent - counts->handled >= 16) continue;
    const union sigval value = {.sival_int = (int)counts->sent++};
    const int failed = number == SIGRTMIN ? sigqueue(parent, number, value) : kill(parent, number);
    if (failed) break;
  }
  _exit(3);
}

static void work_amid_signals(int number, long count) {
  const pid_t self = getpid();
  struct sigaction action = {.sa_sigaction = on_sender, .sa_flags = SA_SIGINFO};
  sigset_t storm, before;
  sigemptyset(&storm);
  sigaddset(&storm, number);
  sigaction(number, &action, NULL);
  signal(SIGUSR2, on_timer);
  signal(SIGCHLD, on_child);
  counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  // The handler needs to know who sends.
  sigprocmask(SIG_BLOCK, &storm, &before);
  sender = fork();
  if (sender == 0) send_without_end(self, number);
  sigprocmask(SIG_SETMASK, &before, NULL);
  while (counts->handled == 0) {
  }
  for (long i = 0; i < 10; ++i) {
    if (do_work(count) != count * (count - 1) / 2) ++wrong;
    // A signal that the program raises is handled before its call returns, whatever else comes.
    raise(SIGUSR2);
    if (handled != i + 1) ++wrong;
    // Signals that it blocks wait.
    sigprocmask(SIG_BLOCK, &storm, NULL);
    const long so_far = counts->handled;
    do_work(10);
    if (counts->handled != so_far) ++wrong;
    sigprocmask(SIG_SETMASK, &before, NULL);
  }
  int status = 0;
  kill(sender, SIGKILL);
  while (waitpid(sender, &status, 0) < 0 && errno == EINTR) {
  }
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGKILL || ended != 1 || inside != 0) ++wrong;
  // All that was sent before the end was handled before the wait returned. The last call may not
  // have been made; signals that are not queued are merged.
  const long missing = counts->sent - counts->handled;
  if (missing < 0 || (number == SIGRTMIN && missing > 1)) ++wrong;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  if (strcmp(argv[1], "timer") == 0 && argc > 4) {
    const long count = atol(argv[4]);
    set_timer(argv[2], atol(argv[3]));
    if (do_work(count) != count * (count - 1) / 2) ++wrong;
    // A signal raised by the program arrives before its call returns, whatever else comes.
    signal(SIGUSR1, on_timer);
    for (int i = 0; i < 5; ++i) {
      own = 0;
      raise(SIGUSR1);
      if (own != 1) ++wrong;
    }
    // The program has blocked no signal, so none is blocked.
    sigset_t mask, none;
    sigemptyset(&none);
    sigprocmask(SIG_BLOCK, NULL, &mask);
    if (memcmp(&mask, &none, 8) != 0) ++wrong;
  } else if (strcmp(argv[1], "children") == 0) {
    hear_of_children(atol(argv[2]));
  } else if (strcmp(argv[1], "sender") == 0) {
    work_amid_signals(SIGUSR1, atol(argv[2]));
  } else if (strcmp(argv[1], "queue") == 0) {
    work_amid_signals(SIGRTMIN, atol(argv[2]));
  } else {
    const long count = atol(argv[2]);
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, NULL);
    signal(SIGUSR1, on_timer);
    for (long i = 0; i < count; ++i) {
      if (argv[1][0] == 'f') {
        fault();
      } else {
        raise(SIGUSR1);
      }
      if (handled != i + 1) ++wrong;
    }
  }
  printf("storm %s\n", wrong != 0 ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
