// Instructions that fault. The handlers see the instruction's own address and registers; they
// continue after it, leave by siglongjmp, or run on another stack.
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern char at_fpe[], at_ill[], at_segv[], at_trap[], behind_trap[];
extern char at_call[], at_jump[], at_memory_call[], at_return[], at_popping_return[];
static sigjmp_buf back;
static volatile int seen, wrong, nested;
static char altstack[65536];

static void expect(int ok, int line) {
  if (!ok) {
    wrong = line;
    fprintf(stderr, "line %d\n", line);
  }
}

static void handler(int number, siginfo_t* info, void* raw) {
  ucontext_t* context = raw;
  greg_t* regs = context->uc_mcontext.gregs;
  char* pc = (char*)regs[REG_RIP];
  ++seen;
  expect(regs[REG_R10] == 0x1010 || number == SIGUSR1, __LINE__);
  expect(regs[REG_R11] == 0x1111 || number == SIGUSR1, __LINE__);
  switch (number) {
    case SIGFPE:
      expect(pc == at_fpe && info->si_addr == at_fpe, __LINE__);
      regs[REG_RIP] += 2;
      break;
    case SIGILL:
      expect(pc == at_ill && info->si_addr == at_ill, __LINE__);
      regs[REG_RIP] += 2;
      break;
    case SIGTRAP:
      expect(pc == behind_trap, __LINE__);
      break;
    case SIGSEGV:
      expect(pc == at_segv && info->si_addr == (void*)16, __LINE__);
      regs[REG_RIP] += 3;
      regs[REG_R10] = 77;
      regs[REG_R11] = 88;
      raise(SIGUSR1);
      break;
    case SIGUSR1:
      ++nested;
      break;
    default:
      expect(0, __LINE__);
  }
}

static void jumper(int number) {
  (void)number;
  siglongjmp(back, 1);
}

static void on_other_stack(int number) {
  (void)number;
  char here;
  ++seen;
  expect(&here >= altstack && &here < altstack + sizeof altstack, __LINE__);
}

static greg_t stray_stack;

/// The CPU faults at a branch to a non-canonical address: the pc is the branch's, and nothing has
/// been pushed or popped.
static void on_stray(int number, siginfo_t* info, void* raw) {
  ucontext_t* context = raw;
  greg_t* regs = context->uc_mcontext.gregs;
  char* pc = (char*)regs[REG_RIP];
  ++seen;
  expect(number == SIGSEGV && info->si_addr == NULL, __LINE__);
  expect(regs[REG_RCX] == 0xcccc && regs[REG_R10] == 0x1010 && regs[REG_R11] == 0x1111, __LINE__);
  const int returns = pc == at_return || pc == at_popping_return;
  expect(returns || pc == at_call || pc == at_jump || pc == at_memory_call, __LINE__);
  if (wrong) _exit(1);  // execution cannot continue
  expect(regs[REG_RSP] == stray_stack - (returns ? 8 : 0), __LINE__);
  if (returns) regs[REG_RSP] += 8;
  regs[REG_RIP] += pc == at_popping_return ? 3 : pc == at_return ? 1 : 2;
}

static void stray(void) {
  struct sigaction action = {.sa_sigaction = on_stray, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  seen = 0;
  static long old_stack;
  for (int round = 0; round < 40; ++round) {
    // A non-canonical address on today's CPUs, and one that is canonical on CPUs with 57 bits.
    void* to = round % 2 ? (void*)0x1877665544332211 : (void*)0x4242000042424242;
    __asm__ volatile(
        "mov %%rsp, %1\n sub $256, %%rsp\n mov %%rsp, %0\n"
        "mov $0xcccc, %%ecx\n mov $0x1010, %%r10d\n mov $0x1111, %%r11d\n"
        "at_call: call *%%rax\n"
        "at_jump: jmp *%%rax\n"
        "at_memory_call: call *(%%rdx)\n"
        "push %%rax\n at_return: ret\n"
        "push %%rax\n at_popping_return: ret $16\n"
        "mov %1, %%rsp\n"
        : "=m"(stray_stack), "=m"(old_stack)
        : "a"(to), "d"(&to)
        : "rcx", "r10", "r11", "memory", "cc");
  }
  expect(seen == 200, __LINE__);
}

/// Branches from one place to good and bad addresses.
static void good(void) {}
__attribute__((noinline)) static void wander(void (*to)(void)) {
  __asm__ volatile("call *%0" ::"r"(to) : "memory");
}
static greg_t came_from;
static void note_place(int number, siginfo_t* info, void* raw) {
  (void)number;
  (void)info;
  came_from = ((ucontext_t*)raw)->uc_mcontext.gregs[REG_RIP];
  siglongjmp(back, 1);
}

static void wander_off(void) {
  struct sigaction action = {.sa_sigaction = note_place, .sa_flags = SA_SIGINFO | SA_NODEFER};
  sigaction(SIGSEGV, &action, NULL);
  for (volatile int round = 0; round < 900; ++round) {
    came_from = 0;
    if (sigsetjmp(back, 1) == 0) wander(round % 300 == 299 ? (void (*)(void))(1UL << 62) : good);
    if (round % 300 != 299) continue;
    const char* at = (const char*)came_from;
    expect(at >= (const char*)wander && at < (const char*)wander + 64, __LINE__);
  }
}

int main(void) {
  struct sigaction action = {.sa_sigaction = handler, .sa_flags = SA_SIGINFO};
  const int all[] = {SIGFPE, SIGILL, SIGSEGV, SIGTRAP, SIGUSR1};
  for (unsigned i = 0; i < sizeof all / sizeof *all; ++i) sigaction(all[i], &action, NULL);
  for (int round = 0; round < 3; ++round) {
    long r10 = 0, r11 = 0;
    __asm__ volatile(
        "mov $0x1010, %%r10d\n mov $0x1111, %%r11d\n"
        "xor %%ecx, %%ecx\n mov $5, %%eax\n xor %%edx, %%edx\n"
        "at_fpe: div %%ecx\n"
        "at_ill: ud2\n"
        "at_trap: int3\n behind_trap: nop\n"
        "mov $16, %%eax\n"
        "at_segv: mov (%%rax), %%rcx\n"
        "mov %%r10, %0\n mov %%r11, %1\n"
        : "=m"(r10), "=m"(r11)::"rax", "rcx", "rdx", "r10", "r11", "memory", "cc");
    expect(r10 == 77 && r11 == 88, __LINE__);
  }
  expect(seen == 15 && nested == 3, __LINE__);

  struct sigaction jump = {.sa_handler = jumper, .sa_flags = SA_NODEFER};
  sigaction(SIGSEGV, &jump, NULL);
  volatile int jumps = 0;
  for (volatile int round = 0; round < 5; ++round) {
    if (sigsetjmp(back, 1) == 0) *(volatile int*)24 = 1;
    ++jumps;
  }
  expect(jumps == 5, __LINE__);

  stack_t stack = {.ss_sp = altstack, .ss_size = sizeof altstack};
  sigaltstack(&stack, NULL);
  struct sigaction alternate = {.sa_handler = on_other_stack, .sa_flags = SA_ONSTACK};
  sigaction(SIGUSR2, &alternate, NULL);
  raise(SIGUSR2);
  kill(getpid(), SIGUSR2);
  expect(seen == 17, __LINE__);

  // A jump to an unmapped address faults there, not at the jump.
  sigaction(SIGSEGV, &jump, NULL);
  if (sigsetjmp(back, 1) == 0) ((void (*)(void))16)();
  stray();
  wander_off();
  printf("faults %s\n", wrong ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
