/* The main thread ends when the other one runs, which continues and traps. rax = address of
 * `value`. With an argument both trap. leader_exits waits: the other one waits; SIGUSR1 ends the
 * program with 3. leader_exits executes: SIGUSR1 makes it execute /bin/true instead. */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static volatile long value = 0x1122334455667788;
static pthread_t leader;

static int waits;
static int executes;

static void end(int signal) {
  (void)signal;
  if (executes) execl("/bin/true", "true", (char*)0);
  _exit(3);
}

static void* run(void* unused) {
  (void)unused;
  pthread_join(leader, 0);
  while (waits) pause();
  __asm__ volatile("int3" : : "a"(&value) : "memory");
  return 0;
}

int main(int argc, char** argv) {
  pthread_t thread;
  executes = argc > 1 && strcmp(argv[1], "executes") == 0;
  waits = executes || (argc > 1 && strcmp(argv[1], "waits") == 0);
  if (waits) signal(SIGUSR1, end);
  leader = pthread_self();
  pthread_create(&thread, 0, run, 0);
  if (argc > 1 && !waits) __asm__ volatile("int3");
  pthread_exit(0);
}

// SPDX-License-Identifier: Apache-2.0
