// SPDX-License-Identifier: Apache-2.0
// A vfork's child kills its parent, and goes on in the parent's memory.
#define _GNU_SOURCE
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { kRounds = 20, kNanoseconds = 5000000 };

static int compare(const void* a, const void* b) {
  return *(const char*)a - *(const char*)b;
}

static void sleep_a_little(void) {
  const struct timespec time = {0, kNanoseconds};
  nanosleep(&time, NULL);
}

/// Returns what code returns that is made now.
static int made_code(int value) {
  unsigned char* code =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return -1;
  const unsigned char bytes[] = {0xb8, (unsigned char)value, 0, 0, 0, 0xc3};  // mov eax, value; ret
  memcpy(code, bytes, sizeof bytes);
  int (*call)(void) = NULL;
  memcpy(&call, &code, sizeof call);
  const int result = call();
  munmap(code, 4096);
  return result;
}

static void go_on(int to) {
  kill(getppid(), SIGKILL);
  int sum = 0;
  for (int i = 0; i < kRounds; ++i) {
    char text[] = "vfork outlives";
    sleep_a_little();  // until the parent is gone, and stops at places of its own
    qsort(text, sizeof text - 1, 1, compare);
    sum += made_code(i) + text[i % 8];
  }
  const char text[] = {(char)('a' + sum % 26), '\n'};
  _exit(write(to, text, sizeof text) == sizeof text ? 0 : 1);
}

int main(void) {
  int ends[2];
  if (pipe(ends) != 0) return 1;
  const pid_t parent = fork();
  if (parent == 0) {
    close(ends[0]);
    if (vfork() == 0) go_on(ends[1]);
    return 1;
  }
  close(ends[1]);
  int status = 0;
  waitpid(parent, &status, 0);
  char text[8] = "";
  const ssize_t got = read(ends[0], text, sizeof text - 1);
  printf("parent %d child %s", WIFSIGNALED(status) ? WTERMSIG(status) : -1, got > 0 ? text : "-\n");
  return 0;
}
