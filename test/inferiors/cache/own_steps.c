// Sets its own trap flag: it must trap after each of its instructions, as natively.
#include <signal.h>
#include <stdio.h>
#include <ucontext.h>

static volatile int steps;
static int failures;

static void on_trap(int number, siginfo_t* info, void* context) {
  (void)number;
  const ucontext_t* seen = context;
  const long pc = seen->uc_mcontext.gregs[REG_RIP];
  if (info->si_code == TRAP_TRACE && (long)info->si_addr == pc) ++steps;
}

#define STEPPED(code)                                                                   \
  __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\t" code \
                   "\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"    \
                   :                                                                    \
                   :                                                                    \
                   : "cc", "memory", "rax", "rcx", "rdi", "r11")

/// Sets the flag by IRET instead of POPF.
static void step_from_iret(void) {
  __asm__ volatile(
      "sub $128, %%rsp\n\tmov %%rsp, %%rax\n\tmov %%ss, %%ecx\n\tpush %%rcx\n\tpush %%rax\n\t"
      "pushfq\n\torq $0x100, (%%rsp)\n\tmov %%cs, %%ecx\n\tpush %%rcx\n\t"
      "lea 1f(%%rip), %%rcx\n\tpush %%rcx\n\tiretq\n\t1: nop\n\tnop\n\tnop\n\t"
      "pushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
      :
      :
      : "cc", "memory", "rax", "rcx");
}

/// Sets the flag by a POPF with prefixes that the CPU ignores.
static void step_from_prefixed_popf(void) {
  __asm__ volatile(
      "sub $128, %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\t.byte 0x2e, 0x67, 0x9d\n\t"
      "nop\n\tnop\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tadd $128, %%rsp"
      :
      :
      : "cc", "memory");
}

enum { kPlain, kLoop, kSystemCall, kString, kInterruptReturn, kPrefixedFlags, kKinds };

#define ROUNDS 20

/// Busy virtual machines lose a trap once in ten thousand times, several in a row, whoever has set
/// the flag. A tracer that loses one does so each time.
static void expect(int kind, const char* what, int count) {
  static int wrong[kKinds];
  if (steps != count && ++wrong[kind] > ROUNDS / 2) {
    printf("%s: %d of %d\n", what, steps, count);
    ++failures;
  }
  steps = 0;
}

char bytes[16];

static void pop_flags(void) {
  __asm__ volatile(
      "sub $128, %%rsp\n\t.globl plain_pushf\n\tplain_pushf: pushfq\n\t"
      ".globl plain_popf\n\tplain_popf: popfq\n\tnop\n\tnop\n\tnop\n\tadd $128, %%rsp"
      :
      :
      : "cc", "memory");
  __asm__ volatile("mov $39, %%eax\n\t.globl plain_syscall\n\tplain_syscall: syscall\n\tnop"
                   :
                   :
                   : "cc", "memory", "rax", "rcx", "r11");
}

int main(void) {
  pop_flags();
  struct sigaction action = {.sa_sigaction = on_trap, .sa_flags = SA_SIGINFO};
  sigaction(SIGTRAP, &action, NULL);
  for (int i = 0; i < ROUNDS; ++i) {
    STEPPED("nop\n\tnop\n\tnop\n\tnop");
    expect(kPlain, "plain", 7);
    STEPPED("mov $20, %%ecx\n\t1: loop 1b");
    expect(kLoop, "loop", 24);
    STEPPED("mov $39, %%eax\n\tsyscall\n\tnop");  // no trap follows a system call
    expect(kSystemCall, "system call", 5);
    STEPPED("mov $10, %%ecx\n\tlea bytes(%%rip), %%rdi\n\trep stosb");
    expect(kString, "string", 15);
    step_from_iret();
    expect(kInterruptReturn, "return from interrupt", 6);
    step_from_prefixed_popf();
    expect(kPrefixedFlags, "prefixed flags", 5);
  }
  unsigned long flags;
  __asm__ volatile("sub $128, %%rsp\n\tpushfq\n\tpop %0\n\tadd $128, %%rsp" : "=r"(flags) : : "cc");
  if ((flags & 0x100) != 0) ++failures;
  return failures != 0;
}

// SPDX-License-Identifier: Apache-2.0
