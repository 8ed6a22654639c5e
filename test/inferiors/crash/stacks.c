// Crashes with callers that began long before; the argument selects how they are called. The code
// between makes more branches than a report reads.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define APART __attribute__((noinline, noclone))

volatile int sink;
int* volatile nowhere;
static int height = 32;
static jmp_buf back;

/// Recursion in an order that does not repeat, hundreds of thousands of branches.
APART static int scribble(unsigned seed, int left) {
  if (left == 0) return 1;
  seed = seed * 1103515245 + 12345;
  const int less = scribble(seed, left - 1);
  return (seed & 0x10000) == 0 ? less + 1 : less + scribble(seed ^ 0x5a5a5a5a, left - 1);
}
APART static int die(void) {
  sink = scribble(1, height);
  sink = *nowhere;
  return sink + 1;
}
APART static int inner(int x) {
  const int y = die();
  sink = x;
  return y + 1;
}
APART static int outer(int x) {
  const int y = inner(x + 1);
  sink = y;
  return y + x;
}
APART static int jumped_to(int x) {
  const int y = outer(x);
  sink = y;
  return y;
}
APART static int jumps(int x) {
  return jumped_to(x + 3);  // a jump if this is optimised
}
APART static int deep(int left) {
  const int y = left == 0 ? outer(1) : deep(left - 1);
  sink = y;
  return y + 1;
}
APART static int pong(int left);
APART static int ping(int left) {
  const int y = left == 0 ? outer(1) : pong(left - 1);
  sink = y;
  return y + 1;
}
APART static int pong(int left) {
  const int y = ping(left - 1);
  sink = y;
  return y + 2;
}
/// Has a frame of run-time size on a stack that is aligned explicitly.
APART static int roomy(int size) {
  volatile char aligned[128] __attribute__((aligned(64)));
  volatile char* room = __builtin_alloca((size_t)size * 16);
  aligned[size] = room[0] = 1;
  const int y = outer(size);
  sink = aligned[size] + room[0];
  return y;
}
static int compare(const void* a, const void* b) {
  const int x = *(const int*)a;
  if (x == 77) outer(1);
  return x - *(const int*)b;
}
APART static void sort(void) {
  int numbers[] = {5, 4, 77, 2};
  qsort(numbers, 4, sizeof numbers[0], compare);
  sink = numbers[0];
}
static void handle(int number) {
  outer(number);
  sink = number;
}
APART static void fault(void) {
  sink = *nowhere;
  sink = 1;
}
static void on_other_stack(void) {
  static char room[1 << 16];
  stack_t other = {.ss_sp = room, .ss_size = sizeof room};
  sigaltstack(&other, NULL);
  struct sigaction action = {.sa_handler = handle, .sa_flags = SA_ONSTACK};
  sigaction(SIGSEGV, &action, NULL);
}
APART static void leave(void) {
  sink = scribble(2, height);
  longjmp(back, 1);
}
APART static void is_left(void) {
  if (setjmp(back) == 0) leave();
  outer(1);
  sink = 1;
}
APART static void to_nowhere(void) {
  sink = scribble(1, height);
  ((void (*)(void))(size_t)nowhere)();
  sink = 1;
}
/// Overwrites its return address, or its caller's and the words above it.
APART static void smash(int skip) {
  volatile long* words = __builtin_frame_address(0);
  for (int i = 1 + skip; i < 40 + skip; ++i) words[i] = (long)0x4141414141414141LL;
  outer(1);
  sink = 1;
}
APART static void smash_with_zeros(void) {
  volatile long* words = __builtin_frame_address(0);
  for (int i = 1; i < 40; ++i) words[i] = 0;
  outer(1);
  sink = 1;
}
/// Replaces its return address with that of code where no call precedes.
APART static void smash_with_code(void) {
  volatile long* words = __builtin_frame_address(0);
  words[1] = (long)&deep;
  outer(1);
  sink = 1;
}

static ucontext_t of_main, of_other;
static void other_body(void) {
  outer(1);
  sink = 1;
}
APART static void switch_stacks(void) {
  static char room[1 << 16];
  getcontext(&of_other);
  of_other.uc_stack.ss_sp = room;
  of_other.uc_stack.ss_size = sizeof room;
  of_other.uc_link = &of_main;
  makecontext(&of_other, other_body, 0);
  swapcontext(&of_main, &of_other);
  sink = 1;
}

static pthread_barrier_t all_there;
APART static void wait_for_ever(void) {
  sink = scribble(3, height);
  pthread_barrier_wait(&all_there);
  for (;;) pause();
}
static void* waiting(void* unused) {
  (void)unused;
  wait_for_ever();
  sink = 1;
  return NULL;
}
static void* dying(void* unused) {
  (void)unused;
  outer(1);
  sink = 1;
  return NULL;
}
static void in_thread(void* (*body)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, body, NULL);
  if (body == waiting) pthread_barrier_wait(&all_there);
  if (body == dying) pthread_join(thread, NULL);
}
static void in_child(void) {
  const pid_t child = fork();
  if (child == 0) outer(1);
  int status = 0;
  waitpid(child, &status, 0);
  sink = scribble(1, height);
  abort();
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (argc > 2) height = (int)strtol(argv[2], NULL, 10);
  if (!strcmp(how, "chain")) outer(1);
  if (!strcmp(how, "jumps")) jumps(1);
  if (!strcmp(how, "deep")) deep(100000);
  if (!strcmp(how, "circle")) ping(2000);
  if (!strcmp(how, "roomy")) roomy(3);
  if (!strcmp(how, "sort")) sort();
  if (!strcmp(how, "handler")) {
    signal(SIGSEGV, handle);
    fault();
  }
  if (!strcmp(how, "raised")) {
    signal(SIGUSR1, handle);
    raise(SIGUSR1);
  }
  if (!strcmp(how, "other-stack")) {
    on_other_stack();
    fault();
  }
  if (!strcmp(how, "left")) is_left();
  if (!strcmp(how, "nowhere")) to_nowhere();
  if (!strcmp(how, "smashed")) smash(0);
  if (!strcmp(how, "smashed-above")) smash(20);
  if (!strcmp(how, "smashed-zeros")) smash_with_zeros();
  if (!strcmp(how, "smashed-code")) smash_with_code();
  if (!strcmp(how, "switched")) switch_stacks();
  if (!strcmp(how, "waiting")) {
    pthread_barrier_init(&all_there, NULL, 2);
    in_thread(waiting);
    outer(1);
  }
  if (!strcmp(how, "thread")) in_thread(dying);
  if (!strcmp(how, "child")) in_child();
  sink = 1;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
