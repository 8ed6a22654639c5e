// Handlers that return, and how: what they find is as it should be, and what they leave is what the
// program goes on with. "beside" does it while another thread maps memory, "timers" while a timer
// interrupts it at any moment. Ends with 0 when all of it was right.
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define FRAME_BYTES 304

static volatile sig_atomic_t wrong, depth, deepest, more, caught;
static sigjmp_buf away;

static void check(int right, int line) {
  if (right) return;
  wrong = 1;
  printf("line %d\n", line);
}
#define CHECK(condition) check((condition), __LINE__)

static void set(int number, void (*handler)(int, siginfo_t*, void*), int flags) {
  struct sigaction action;
  memset(&action, 0, sizeof action);
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | flags;
  sigaction(number, &action, NULL);
}

static int blocks(int number) {
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  return sigismember(&now, number);
}

static void nest(int number, siginfo_t* info, void* context) {
  (void)info;
  ++caught;
  if (++depth > deepest) deepest = depth;
  if (more-- > 0) raise(number == SIGUSR1 ? SIGUSR2 : SIGUSR1);
  CHECK(((ucontext_t*)context)->uc_mcontext.gregs[REG_CSGSFS] & 0x33);
  --depth;
}

static void leave(int number, siginfo_t* info, void* context) {
  (void)info;
  (void)context;
  ++caught;
  siglongjmp(away, number);
}

// The registers that a recorder might need for itself, all flags, and another place to go on.
extern char the_fault[], elsewhere[];
static uint64_t stack_seen;
static void redirect(int number, siginfo_t* info, void* context) {
  (void)number;
  greg_t* regs = ((ucontext_t*)context)->uc_mcontext.gregs;
  CHECK(info->si_addr == (void*)8 && regs[REG_RIP] == (greg_t)the_fault);
  CHECK(regs[REG_R10] == 10 && regs[REG_R11] == 11 && regs[REG_RCX] == 12);
  ++caught;
  regs[REG_RIP] = (greg_t)elsewhere;
  regs[REG_R10] = 20;
  regs[REG_R11] = 21;
  regs[REG_RCX] = 22;
  regs[REG_RAX] = 23;
  stack_seen = regs[REG_RSP];
  regs[REG_RSP] -= 4096;
  regs[REG_EFL] |= 0x8d5;  // all that arithmetic sets
  sigaddset(&((ucontext_t*)context)->uc_sigmask, SIGUSR2);
}

static void go_elsewhere(void) {
  uint64_t r10, r11, rcx, rax, rsp, flags, behind;
  __asm__ volatile(
      "mov $10, %%r10; mov $11, %%r11; mov $12, %%rcx; mov $8, %%rax\n"
      ".globl the_fault, elsewhere\n"
      "the_fault: mov (%%rax), %%rax\n"
      "ud2\n"
      "elsewhere: mov %%rsp, %%rdx\n"
      "pushfq; pop %%rdi\n"
      "mov %%rdx, %%rsp; add $4096, %%rsp; mov %%rsp, %%r8\n"
      "mov %%r10, %%rsi; mov %%r11, %%r9\n"
      : "=S"(r10), "=r"(r11), "=c"(rcx), "=a"(rax), "=d"(rsp), "=D"(flags), "=r"(behind)
      :
      : "r8", "r9", "r10", "r11", "memory", "cc");
  __asm__ volatile("mov %%r9, %0; mov %%r8, %1" : "=r"(r11), "=r"(behind));
  CHECK(r10 == 20 && rcx == 22 && rax == 23 && rsp + 4096 == stack_seen);
  CHECK((flags & 0x8d5) == 0x8d5);
  CHECK(blocks(SIGUSR2));
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, NULL);
}

// A frame is the program's: it finds it as it has left it, also when the handler has returned.
static unsigned char frame_left[FRAME_BYTES];
static void* frame_at;
static void look_at_frame(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  ++caught;
  memcpy(frame_left, context, sizeof frame_left);
  frame_at = context;
}

static char other_stack[1 << 16] __attribute__((aligned(16)));

static void keep_frames(void) {
  const stack_t there = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
  stack_t now;
  sigaltstack(&there, NULL);
  set(SIGUSR1, look_at_frame, SA_ONSTACK);
  for (int i = 0; i < 3; ++i) {
    raise(SIGUSR1);
    CHECK((char*)frame_at > other_stack && (char*)frame_at < other_stack + sizeof other_stack);
    CHECK(memcmp(frame_left, frame_at, sizeof frame_left) == 0);
    sigaltstack(NULL, &now);
    CHECK(now.ss_sp == other_stack && now.ss_size == sizeof other_stack && now.ss_flags == 0);
  }
}

static void divide(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  ++caught;
  ((ucontext_t*)context)->uc_mcontext.gregs[REG_RCX] = 1;
}

static void fork_inside(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  (void)context;
  const pid_t child = fork();
  if (child == 0) return;
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
  ++caught;
}

static void do_all(void) {
  for (int flags = 0; flags < 2; ++flags) {
    set(SIGUSR1, nest, flags != 0 ? SA_NODEFER : 0);
    set(SIGUSR2, nest, flags != 0 ? SA_NODEFER : 0);
    deepest = 0;
    more = 4;
    raise(SIGUSR1);
    CHECK(deepest == (flags != 0 ? 5 : 2) && depth == 0);
    CHECK(!blocks(SIGUSR1) && !blocks(SIGUSR2));
  }
  set(SIGUSR1, leave, 0);
  for (int i = 0; i < 3; ++i) {
    if (sigsetjmp(away, 1) == 0) {
      raise(SIGUSR1);
      CHECK(0);
    }
    CHECK(!blocks(SIGUSR1));
  }
  set(SIGSEGV, redirect, 0);
  for (int i = 0; i < 3; ++i) go_elsewhere();
  keep_frames();
  set(SIGFPE, divide, 0);
  for (int i = 0; i < 3; ++i) {
    uint64_t quotient = 6, rest = 0;
    __asm__ volatile("div %%rcx" : "+a"(quotient), "+d"(rest) : "c"(0UL) : "cc");
    CHECK(quotient == 6 && rest == 0);
  }
  const pid_t self = getpid();
  set(SIGUSR1, fork_inside, 0);
  raise(SIGUSR1);
  if (getpid() != self) _exit(blocks(SIGUSR1) ? 8 : 7);
  CHECK(!blocks(SIGUSR1));
}

static volatile int ends;
static void* map_memory(void* unused) {
  while (!ends) {
    char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    mprotect(page, 4096, PROT_READ | PROT_EXEC);
    mprotect(page, 4096, PROT_READ);
    munmap(page, 4096);
  }
  return unused;
}

static volatile sig_atomic_t expired;
static void on_timer(int number, siginfo_t* info, void* context) {
  (void)number;
  (void)info;
  (void)context;
  ++expired;
}

int main(int count, char** words) {
  const char* mode = count > 1 ? words[1] : "alone";
  const int turns = count > 2 ? atoi(words[2]) : 1;
  pthread_t other;
  if (strcmp(mode, "beside") == 0) {
    sigset_t all;
    sigset_t before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_create(&other, NULL, map_memory, NULL);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
  }
  if (strcmp(mode, "timers") == 0) {
    const struct itimerval every = {{0, 700}, {0, 700}};
    set(SIGALRM, on_timer, SA_RESTART);
    setitimer(ITIMER_REAL, &every, NULL);
  }
  for (int i = 0; i < turns && !wrong; ++i) do_all();
  if (strcmp(mode, "beside") == 0) {
    ends = 1;
    pthread_join(other, NULL);
  }
  return wrong || caught == 0;
}

// SPDX-License-Identifier: Apache-2.0
