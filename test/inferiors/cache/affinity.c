// SPDX-License-Identifier: Apache-2.0
// Asks for its affinity, and hands it down, amid signals in quick succession.
//   ROUNDS SIGNALS CPUS   ROUNDS rounds with SIGNALS signals before each question; CPUS are the
//                         hexadecimal digits of Cpus_allowed in /proc/self/status
// Exits with 0 if every answer is the program's own affinity.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static cpu_set_t own;
static volatile long handled;
static int wrong;
static int signals;
static pthread_t main_thread;
static volatile int ends;

static void on_signal(int number) {
  (void)number;
  ++handled;
}

static void storm(void) {
  for (int i = 0; i < signals; ++i) raise(SIGUSR1);
}

static int is_own(const cpu_set_t* set) {
  return CPU_EQUAL(set, &own);
}

static void expect_own(const char* where, int answered, const cpu_set_t* set) {
  if (answered == 0 && is_own(set)) return;
  fprintf(stderr, "%s: %d CPUs instead of %d (%s)\n", where, CPU_COUNT(set), CPU_COUNT(&own),
          answered == 0 ? "no error" : strerror(errno));
  wrong = 1;
}

static void ask(const char* where) {
  cpu_set_t set;
  expect_own(where, sched_getaffinity(0, sizeof set, &set), &set);
}

/// Compares the file with what the caller has seen.
static void look(const char* where, const char* expected) {
  char line[4096] = "";
  char seen[4096] = "";
  FILE* file = fopen("/proc/self/status", "re");
  while (file != NULL && fgets(line, sizeof line, file) != NULL) {
    if (sscanf(line, "Cpus_allowed: %4000s", seen) == 1) break;
  }
  if (file != NULL) fclose(file);
  if (strcmp(seen, expected) == 0) return;
  fprintf(stderr, "%s: %s instead of %s\n", where, seen, expected);
  wrong = 1;
}

static void* in_thread(void* unused) {
  ask("a new thread");
  return unused;
}

static void* beside(void* unused) {
  while (!ends) {
    cpu_set_t set;
    expect_own("another thread's", pthread_getaffinity_np(main_thread, sizeof set, &set), &set);
    usleep(1000);
  }
  return unused;
}

static void in_child(const char* where, pid_t child) {
  if (child == 0) {
    ask(where);
    _exit(wrong);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) wrong = 1;
}

static void set_one(void) {
  cpu_set_t one;
  CPU_ZERO(&one);
  for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &own)) CPU_SET(cpu, &one);
  }
  const cpu_set_t all = own;
  if (sched_setaffinity(0, sizeof one, &one) != 0) wrong = 1;
  own = one;
  storm();
  ask("one CPU");
  own = all;
  if (sched_setaffinity(0, sizeof own, &own) != 0) wrong = 1;
  storm();
  ask("all CPUs again");
}

/// A function of its own, because a caller's variables may be in registers that vfork's second
/// return does not restore.
__attribute__((noinline)) static void in_child_that_shares_memory(void) {
  in_child("a child that shares memory", vfork());
}

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const int rounds = atoi(argv[1]);
  signals = atoi(argv[2]);
  main_thread = pthread_self();
  signal(SIGUSR1, on_signal);
  if (sched_getaffinity(0, sizeof own, &own) != 0) return 2;
  for (int i = 0; i < rounds; ++i) {
    storm();
    ask("the thread itself");
    storm();
    pthread_t thread;
    if (pthread_create(&thread, NULL, in_thread, NULL) != 0) return 2;
    pthread_join(thread, NULL);
    storm();
    in_child("a child", fork());
    storm();
    in_child_that_shares_memory();
    set_one();
  }
  pthread_t thread;
  if (pthread_create(&thread, NULL, beside, NULL) != 0) return 2;
  for (int i = 0; i < rounds; ++i) storm();
  ends = 1;
  pthread_join(thread, NULL);
  storm();
  look("the file", argv[3]);
  // Once open, the file may be read at any time.
  storm();
  look("the file again", argv[3]);
  if (wrong == 0 && handled == (long)signals * (rounds * 7 + 2)) return 0;
  fprintf(stderr, "handled %ld\n", handled);
  return 1;
}
