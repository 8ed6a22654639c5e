// SPDX-License-Identifier: Apache-2.0
// Stores at addresses that follow from a count: a recorded value of rsi at a store says which store
// it was.
//   threads    several threads do so at the same time
//   children   several processes do so at the same time
//   signals    a timer's handler does so, too, amid the program's stores
// Exits with 0 if every store arrived.
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kOthers = 3, kCount = 20000, kRounds = 3, kEnough = 20, kHandled = 1 << 18 };

long cells[kOthers + 1][kCount];
long handled_cells[kHandled];
static volatile long handled;

// Fills the cells with their numbers from rsi on: one taken branch for each but the last. The
// recorder does not leave out the sums of ADC, as it does those of ADD.
__attribute__((noinline)) static void tally(long* first, long count) {
  long number = 0;
  __asm__ volatile(
      ".globl at_tally\n"
      "at_tally:\n\t"
      "mov %%rsi, (%%rdi,%%rsi,8)\n\t"
      "lfence\n\t"
      "stc\n\t"
      "adc $0, %%rsi\n\t"
      "cmp %%rdx, %%rsi\n\t"
      "jb at_tally"
      : "+S"(number)
      : "D"(first), "d"(count)
      : "memory", "cc");
}

static void on_timer(int signal_number) {
  (void)signal_number;
  if (handled == kHandled) return;
  __asm__ volatile(
      ".globl at_handled\n"
      "at_handled:\n\t"
      "mov %%rsi, (%%rdi,%%rsi,8)"
      :
      : "S"(handled), "D"(handled_cells)
      : "memory");
  handled = handled + 1;
}

static int is_full(const long* first, long count) {
  for (long i = 0; i < count; ++i) {
    if (first[i] != i) return 0;
  }
  return 1;
}

// Returns nonzero if all went well.
static int work(long which) {
  int good = 1;
  for (int i = 0; i < kRounds; ++i) {
    memset(cells[which], 0xff, sizeof cells[which]);
    (void)getppid();
    tally(cells[which], kCount);
    good = good && is_full(cells[which], kCount);
  }
  return good;
}

static void* thread(void* which) {
  return (void*)(long)work((long)which);
}

static int by_threads(void) {
  pthread_t others[kOthers];
  for (long i = 0; i < kOthers; ++i) pthread_create(&others[i], NULL, thread, (void*)(i + 1));
  int good = work(0);
  for (int i = 0; i < kOthers; ++i) {
    void* result = NULL;
    pthread_join(others[i], &result);
    good = good && result != NULL;
  }
  return good;
}

static int by_children(void) {
  int good = work(0);
  for (long i = 0; i < kOthers; ++i) {
    if (fork() == 0) _exit(work(i + 1) ? 0 : 1);
  }
  good = good && work(0);
  int status = 0;
  while (wait(&status) > 0) good = good && status == 0;
  return good;
}

static int amid_signals(void) {
  signal(SIGALRM, on_timer);
  const struct itimerval often = {{0, 200}, {0, 200}};
  const struct itimerval never = {{0, 0}, {0, 0}};
  int good = 1;
  while (handled < kEnough) {
    setitimer(ITIMER_REAL, &often, NULL);
    good = good && work(0);
    // The memory for recorded values does not hold those of two turns.
    const long before = handled;
    while (handled == before) {
    }
    setitimer(ITIMER_REAL, &never, NULL);
  }
  return good && is_full(handled_cells, handled);
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  int good = 0;
  if (strcmp(how, "threads") == 0) good = by_threads();
  if (strcmp(how, "children") == 0) good = by_children();
  if (strcmp(how, "signals") == 0) good = amid_signals();
  return good ? 0 : 1;
}
