// Ends in the way that its argument names.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

volatile int sink;
int* volatile nowhere;
static sigjmp_buf back;

static void fault(void) {
  sink = *nowhere;
}
static int deeper(int level) {
  volatile char room[4096];
  room[0] = (char)level;
  return level == -1 ? 0 : deeper(level + 1) + room[0];
}
static void __attribute__((noinline)) pong(long left);
static void __attribute__((noinline)) ping(long left) {
  if (left == 0) fault();
  pong(left);
  ++sink;
}
static void __attribute__((noinline)) pong(long left) {
  ping(left - 1);
  ++sink;
}
static int tree(int height) {
  return height == 0 ? 1 : tree(height - 1) + tree(height - 1);
}
static void reraise(int number) {
  signal(number, SIG_DFL);
  raise(number);
}
/// Recursion in an order that does not repeat.
static int __attribute__((noinline)) scribble(unsigned seed, int height) {
  if (height == 0) return 1;
  seed = seed * 1103515245 + 12345;
  const int less = scribble(seed, height - 1);
  return (seed & 0x10000) == 0 ? less + 1 : less + scribble(seed ^ 0x5a5a5a5a, height - 1);
}
static void write_and_reraise(int number) {
  sink = scribble(1, 28);
  reraise(number);
}
static void abort_late(int number) {
  (void)number;
  abort();
}
static void jump_back(int number) {
  siglongjmp(back, number);
}
static void on_other_stack(void (*handler)(int)) {
  static char room[65536];
  stack_t other = {.ss_sp = room, .ss_size = sizeof room};
  sigaltstack(&other, NULL);
  struct sigaction action = {.sa_handler = handler, .sa_flags = SA_ONSTACK};
  sigaction(SIGSEGV, &action, NULL);
}
static void* faulting_thread(void* start) {
  pthread_barrier_wait(start);
  fault();
  return NULL;
}
static void* waiting_thread(void* start) {
  pthread_barrier_wait(start);
  for (;;) pause();
  return NULL;
}
static void many_threads(int faulting, int waiting) {
  pthread_barrier_t start;
  pthread_t thread;
  pthread_barrier_init(&start, NULL, (unsigned)(faulting + waiting + 1));
  for (int i = 0; i < waiting; ++i) pthread_create(&thread, NULL, waiting_thread, &start);
  for (int i = 0; i < faulting; ++i) pthread_create(&thread, NULL, faulting_thread, &start);
  pthread_barrier_wait(&start);
  for (;;) pause();
}
static void sparse_memory(void) {
  const size_t size = (size_t)4 << 30;
  char* memory =
      mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  memory[0] = 'a';
  memory[size - 1] = 'z';
  nowhere = NULL;
  fault();
}
static void full_memory(size_t megabytes) {
  const size_t size = megabytes << 20;
  char* memory = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(memory, 0x5a, size);
  fault();
}
#ifdef __x86_64__
/// Loads known values into registers of every kind that the CPU has.
static void vectors(void) {
  __asm__ volatile("fldpi; movq %0, %%xmm3; punpcklqdq %%xmm3, %%xmm3" ::"r"(0x7777777777777777));
  if (__builtin_cpu_supports("avx2")) {
    __asm__ volatile(
        "movq %0, %%xmm4; vpunpcklqdq %%xmm4, %%xmm4, %%xmm4;"
        "vinserti128 $1, %%xmm4, %%ymm3, %%ymm3" ::"r"(0x5555555555555555));
  }
  if (__builtin_cpu_supports("avx512f")) {
    __asm__ volatile(
        "movl $0x5a5a, %%eax; kmovw %%eax, %%k2; vpbroadcastq %0, %%zmm19" ::"r"(0x9999999999999999)
        : "eax");
  }
  __asm__ volatile("ud2");
}
#else
static void vectors(void) {
  __builtin_trap();
}
#endif
static void many_mappings(long count) {
  char* memory = mmap(NULL, (size_t)count * 8192, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  for (long i = 0; i < count; ++i) mprotect(memory + i * 8192, 4096, PROT_READ);
  fault();
}

/// Forks children one after the other; a signal ends each.
static void dying_children(long count) {
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) fault();
    waitpid(child, NULL, 0);
  }
}
/// Forks a child that sleeps and waits for it.
static void hanging_child(void) {
  const pid_t child = fork();
  while (child == 0) pause();
  waitpid(child, NULL, 0);
}
static void say_and_leave(int number) {
  (void)number;
  static const char text[] = "leaving\n";
  if (write(1, text, sizeof text - 1) < 0) _exit(1);
  _exit(7);
}

/// Touches a gigabyte of memory.
static void grow(void) {
  for (int i = 0; i < 1024; ++i) {
    volatile char* piece = malloc(1U << 20U);
    for (unsigned at = 0; piece && at < 1U << 20U; at += 1024) piece[at] = 1;
  }
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  const long number = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
  printf("%s\n", how);
  fflush(stdout);
  if (!strcmp(how, "null")) fault();
  if (!strcmp(how, "ud2")) __builtin_trap();
  if (!strcmp(how, "abort")) abort();
  if (!strcmp(how, "wild")) ((void (*)(void))0x1234567812345678)();
  if (!strcmp(how, "jump0")) ((void (*)(void))(size_t)nowhere)();
  if (!strcmp(how, "divide")) sink = 7 / sink;
  if (!strcmp(how, "circle")) ping(number);
  if (!strcmp(how, "calls")) {
    sink = tree((int)number);
    fault();
  }
  if (!strcmp(how, "overflow")) sink = deeper(0);
  if (!strcmp(how, "overflow-alt")) {
    on_other_stack(reraise);
    sink = deeper(0);
  }
  if (!strcmp(how, "reraise")) {
    signal(SIGSEGV, reraise);
    fault();
  }
  if (!strcmp(how, "reraise-late")) {
    struct sigaction action = {.sa_handler = write_and_reraise, .sa_flags = SA_NODEFER};
    sigaction(SIGSEGV, &action, NULL);
    fault();
  }
  if (!strcmp(how, "abort-late")) {
    signal(SIGSEGV, abort_late);
    fault();
  }
  if (!strcmp(how, "return-late")) {
    signal(SIGSEGV, write_and_reraise);
    fault();
  }
  if (!strcmp(how, "caught")) {
    on_other_stack(jump_back);
    for (int i = 0; i < 3; ++i) {
      if (sigsetjmp(back, 1) == 0) fault();
    }
    return 0;
  }
  if (!strcmp(how, "ignored")) {
    signal(SIGSEGV, SIG_IGN);
    fault();
  }
  if (!strcmp(how, "kill")) kill(getpid(), (int)number);
  if (!strcmp(how, "threads")) many_threads((int)number, 0);
  if (!strcmp(how, "waiting")) many_threads(1, (int)number);
  if (!strcmp(how, "sparse")) sparse_memory();
  if (!strcmp(how, "full")) full_memory((size_t)number);
  if (!strcmp(how, "vectors")) vectors();
  if (!strcmp(how, "mappings")) many_mappings(number);
  if (!strcmp(how, "child")) {
    const pid_t child = fork();
    if (child == 0) fault();
    int status = 0;
    waitpid(child, &status, 0);
    return (int)number;
  }
  if (!strcmp(how, "children")) {
    dying_children(number);
    return 0;
  }
  if (!strcmp(how, "hanging-child")) hanging_child();
  if (!strcmp(how, "stubborn")) signal(SIGTERM, SIG_IGN);
  if (!strcmp(how, "leaves")) signal(SIGTERM, say_and_leave);
  if (!strcmp(how, "stubborn") || !strcmp(how, "leaves")) {
    puts("ready");
    fflush(stdout);
    for (;;) pause();
  }
  if (!strcmp(how, "grow")) grow();
  if (!strcmp(how, "hang")) {
    for (;;) pause();
  }
  return (int)number;
}

// SPDX-License-Identifier: Apache-2.0
