// Programs of millions of branches that crash, each in its own way.
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS 4

static volatile uint32_t result;
static uint32_t rounds;
static const char* argument;
static sem_t at_the_end, first_is_busy;

__attribute__((noinline)) static void work(uint32_t count, uint32_t state) {
  for (uint32_t i = 0; i < count; ++i) {
    state = state * 1664525U + 1013904223U;
    if ((state >> 31) != 0) {
      result = state;
    } else if ((state >> 30) != 0) {
      result += 1;
    }
  }
}

static void* work_thread(void* number) {
  work(rounds, (uint32_t)(uintptr_t)number);
  return NULL;
}

__attribute__((noinline)) static void culprit(volatile int* nowhere) {
  *nowhere = 1;
}

/// The first thread's work: branches while others work, and when one of them ends the program. In
/// between it waits, so that the number of branches does not depend on how fast they are recorded.
static void be_busy_at_the_end(void) {
  work(rounds, 2);
  sem_wait(&at_the_end);
  sem_post(&first_is_busy);
  for (;;) work(rounds, 2);
}

static void await_the_busy_one(void) {
  sem_post(&at_the_end);
  sem_wait(&first_is_busy);
}

static void* crashing_thread(void* nothing) {
  (void)nothing;
  work(rounds, 1);
  await_the_busy_one();
  culprit(NULL);
  return NULL;
}

static void become_another(void) {
  char* arguments[] = {"all_of_it", "alone", (char*)argument, NULL};
  execv("/proc/self/exe", arguments);
}

static void* replacing_thread(void* nothing) {
  work(rounds, 1);
  await_the_busy_one();
  become_another();
  return nothing;
}

static void start(pthread_t* threads, void* (*what)(void*)) {
  for (uintptr_t i = 0; i < THREADS; ++i) pthread_create(&threads[i], NULL, what, (void*)i);
}

static void on_alarm(int signal) {
  work(20, (uint32_t)signal);
}

static void set_timer(void) {
  const struct itimerval often = {{0, 2000}, {0, 2000}};
  signal(SIGALRM, on_alarm);
  setitimer(ITIMER_REAL, &often, NULL);
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const char* how = argv[1];
  argument = argv[2];
  rounds = (uint32_t)atoi(argument);
  sem_init(&at_the_end, 0, 0);
  sem_init(&first_is_busy, 0, 0);
  pthread_t threads[THREADS];
  if (strcmp(how, "threads") == 0) {
    start(threads, work_thread);
    work(rounds / 2, 1);
  } else if (strcmp(how, "ended") == 0) {
    start(threads, work_thread);
    for (int i = 0; i < THREADS; ++i) pthread_join(threads[i], NULL);
  } else if (strcmp(how, "many") == 0) {
    const uint32_t all = rounds;
    rounds = 200;
    for (uint32_t i = 0; i < all; ++i) {
      pthread_create(threads, NULL, work_thread, NULL);
      pthread_join(threads[0], NULL);
    }
  } else if (strcmp(how, "exec") == 0) {
    work(rounds, 1);
    become_another();
  } else if (strcmp(how, "exec-thread") == 0) {
    pthread_create(threads, NULL, replacing_thread, NULL);
    be_busy_at_the_end();
  } else if (strcmp(how, "timer") == 0) {
    set_timer();
    work(rounds, 1);
  } else if (strcmp(how, "kill") == 0) {
    start(threads, work_thread);
    work(rounds / 2, 1);
    kill(getpid(), SIGKILL);
  } else if (strcmp(how, "crash") == 0) {
    start(threads, crashing_thread);
    be_busy_at_the_end();
  } else {
    work(rounds, 1);
  }
  culprit(NULL);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
