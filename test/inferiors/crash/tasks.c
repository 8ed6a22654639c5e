// Tasks that take turns like goroutines, under Go's names: mcall leaves a task's stack for the
// scheduler's, gogo resumes a task. At the end the first task crashes.
#include <stddef.h>
#include <stdint.h>

struct task {
  void* sp;
  void* pc;
};

void mcall(void (*then)(void)) __asm__("runtime.mcall");
void gogo(struct task* task) __asm__("runtime.gogo");

struct task* current;
char* scheduler_sp;

__asm__(
    ".text\n"
    ".type runtime.mcall, @function\n"
    "runtime.mcall:\n"
    "  mov (%rsp), %rdx\n"
    "  push %rbx; push %rbp; push %r12; push %r13; push %r14; push %r15\n"
    "  mov current(%rip), %rax\n"
    "  mov %rsp, (%rax)\n"
    "  mov %rdx, 8(%rax)\n"
    "  mov scheduler_sp(%rip), %rsp\n"
    "  call *%rdi\n"
    "  ud2\n"
    ".size runtime.mcall, . - runtime.mcall\n"
    ".type runtime.gogo, @function\n"
    "runtime.gogo:\n"
    "  mov (%rdi), %rsp\n"
    "  mov 8(%rdi), %rdx\n"
    "  pop %r15; pop %r14; pop %r13; pop %r12; pop %rbp; pop %rbx\n"
    "  add $8, %rsp\n"
    "  jmp *%rdx\n"
    ".size runtime.gogo, . - runtime.gogo\n");

enum { kTasks = 3, kStackWords = 4096, kSavedWords = 7, kRounds = 20 };
static struct task tasks[kTasks];
static uintptr_t stacks[kTasks][kStackWords] __attribute__((aligned(16)));
static volatile int worked;

static void schedule(void) {
  current = &tasks[(current - tasks + 1) % kTasks];
  gogo(current);
}

static void rest(void) {
  mcall(schedule);
}

static void work(void) {
  worked = worked + 1;
}

static void worker(void) {
  for (;;) {
    work();
    rest();
  }
}

static void other_worker(void) {
  for (;;) {
    rest();
    work();
  }
}

static void begins(struct task* task, uintptr_t* stack, void (*function)(void)) {
  // Aligned as after a call: the return address below is never used.
  uintptr_t* const return_address = stack + kStackWords - 1;
  task->sp = return_address - kSavedWords;
  task->pc = (void*)function;
}

int main(void) {
  scheduler_sp = (char*)(stacks[0] + kStackWords);
  current = &tasks[0];
  begins(&tasks[1], stacks[1], worker);
  begins(&tasks[2], stacks[2], other_worker);
  for (int i = 0; i < kRounds; ++i) rest();
  *(volatile int*)8 = worked;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
