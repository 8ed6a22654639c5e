// Threads that compute, sleep, take signals, fork, start and end, and check everything they can see
// of themselves, until a debugger sets `finish`. Exits with 0 if all of it was always right.
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kThreads = 3 };
volatile int finish;
atomic_long turns;
volatile long watched;
static atomic_int wrong;
static atomic_long wrong_flags;
static atomic_long raised, handled;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int first_descriptor;
static int ignores_traps;
static __thread sigjmp_buf back;
static __thread volatile int jumps;

static void expect(int ok, int line) {
  int none = 0;
  if (!ok) atomic_compare_exchange_strong(&wrong, &none, line);
}

static void on_signal(int number) {
  (void)number;
  atomic_fetch_add(&handled, 1);
}

static void on_fault(int number) {
  // An intended fault, or one that the program must never see.
  if (jumps) siglongjmp(back, number);
  _exit(3);
}

__attribute__((noinline)) long hot(long n) {
  long sum = 0;
  for (long i = 0; i < n; ++i) sum += i * i;
  return sum;
}

static void* short_lived(void* argument) {
  return (void*)hot((long)argument);
}

static void compute(long turn) {
  const long n = 20 + turn % 30;
  expect(hot(n) == (n - 1) * n * (2 * n - 1) / 6, __LINE__);
  double x = 1.5;
  for (int i = 0; i < 10; ++i) x = x * 1.5 - 0.5;
  expect(x == 1.0 + 0.5 * 57.6650390625, __LINE__);
  char text[64];
  snprintf(text, sizeof text, "%ld:%08lx", turn, (unsigned long)turn);
  expect(strtol(text, NULL, 10) == turn, __LINE__);
  // Registers that a recorder might use, the flags, and the return address that a call pushes.
  long r10 = turn, r11 = ~turn, flags, pushed, here;
  __asm__ volatile(
      "mov %[a], %%r10\n mov %[b], %%r11\n cmp %%r10, %%r10\n call 1f\n 1: pop %[pushed]\n"
      "lea 1b(%%rip), %[here]\n pushf\n pop %[flags]\n mov %%r10, %[a]\n mov %%r11, %[b]\n"
      :
      [a] "+r"(r10), [b] "+r"(r11), [flags] "=&r"(flags), [pushed] "=&r"(pushed), [here] "=&r"(here)
      :
      : "r10", "r11", "cc", "memory");
  expect(r10 == turn && r11 == ~turn && pushed == here, __LINE__);
  const int flags_right = (flags & 0x40) != 0 && (flags & 0x100) == 0;
  if (!flags_right) wrong_flags = flags;
  expect(flags_right, __LINE__);
}

static void look_around(void) {
  sigset_t mask;
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  expect(sigismember(&mask, SIGUSR2) == 1 && sigismember(&mask, SIGTRAP) == 0 &&
             sigismember(&mask, SIGSEGV) == 0,
         __LINE__);
  struct sigaction action;
  sigaction(SIGTRAP, NULL, &action);
  expect(action.sa_handler == (ignores_traps ? SIG_IGN : SIG_DFL), __LINE__);
  sigaction(SIGSEGV, NULL, &action);
  expect(action.sa_handler == on_fault, __LINE__);
  pthread_mutex_lock(&lock);
  const int descriptor = open("/dev/null", O_RDONLY);
  expect(descriptor == first_descriptor, __LINE__);
  close(descriptor);
  pthread_mutex_unlock(&lock);
}

static void fault(void) {
  jumps = 1;
  if (sigsetjmp(back, 1) == 0) {
    *(volatile int*)8 = 1;
    expect(0, __LINE__);
  }
  jumps = 0;
}

static void map_and_unmap(long turn) {
  char* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  expect(page != MAP_FAILED && page[4096] == 0, __LINE__);
  memset(page, (int)turn, 8192);
  expect(mprotect(page, 4096, PROT_READ) == 0 && page[100] == (char)turn, __LINE__);
  expect(munmap(page, 8192) == 0, __LINE__);
}

static void fork_once(long turn) {
  // A child that shares nothing except what it inherited.
  pthread_mutex_lock(&lock);
  const pid_t child = fork();
  if (child == 0) _exit(hot(5) == 30 && first_descriptor > 2 ? (int)(turn & 0x3f) : 99);
  int status = -1;
  expect(child > 0 && waitpid(child, &status, 0) == child, __LINE__);
  expect(WIFEXITED(status) && WEXITSTATUS(status) == (int)(turn & 0x3f), __LINE__);
  pthread_mutex_unlock(&lock);
}

static void talk(const int* ends, long turn) {
  char byte = (char)turn, answer = 0;
  expect(write(ends[1], &byte, 1) == 1 && read(ends[0], &answer, 1) == 1 && answer == byte,
         __LINE__);
}

static void start_and_join(void) {
  pthread_t helper;
  void* result = NULL;
  expect(pthread_create(&helper, NULL, short_lived, (void*)9L) == 0, __LINE__);
  pthread_join(helper, &result);
  expect((long)result == 204, __LINE__);
}

static void nap(void) {
  const struct timespec moment = {0, 200000};
  struct timespec left = {0, 0};
  expect(nanosleep(&moment, &left) == 0 || left.tv_nsec < 10 * moment.tv_nsec, __LINE__);
}

static void* work(void* pipe_ends) {
  for (long turn = 0; !finish; ++turn) {
    compute(turn);
    if (turn % 16 == 0) look_around();
    if (turn % 64 == 1) talk(pipe_ends, turn);
    if (turn % 128 == 2) {
      atomic_fetch_add(&raised, 1);
      raise(SIGUSR1);
    }
    if (turn % 256 == 3) start_and_join();
    if (turn % 256 == 130) fault();
    if (turn % 256 == 194) map_and_unmap(turn);
    if (turn % 512 == 4) nap();
    if (turn % 4096 == 5) fork_once(turn);
    watched = turn;
    atomic_fetch_add(&turns, 1);
  }
  return NULL;
}

int main(int argc, char** argv) {
  (void)argv;
  ignores_traps = argc > 1;
  sigset_t blocked;
  sigemptyset(&blocked);
  sigaddset(&blocked, SIGUSR2);
  sigprocmask(SIG_BLOCK, &blocked, NULL);
  signal(SIGUSR1, on_signal);
  signal(SIGSEGV, on_fault);
  if (ignores_traps) signal(SIGTRAP, SIG_IGN);
  static int ends[kThreads][2];
  pthread_t threads[kThreads];
  for (int i = 0; i < kThreads; ++i) {
    if (pipe(ends[i]) != 0) return 2;
  }
  first_descriptor = open("/dev/null", O_RDONLY);
  close(first_descriptor);
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, ends[i]);
  for (int i = 0; i < kThreads; ++i) pthread_join(threads[i], NULL);
  if (wrong != 0) fprintf(stderr, "line %d was wrong, flags %lx\n", wrong, wrong_flags);
  if (handled < raised) fprintf(stderr, "%ld of %ld signals\n", (long)handled, (long)raised);
  return wrong != 0 || handled < raised;
}

// SPDX-License-Identifier: Apache-2.0
