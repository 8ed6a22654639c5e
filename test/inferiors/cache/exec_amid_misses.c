// Children whose first thread runs new code all the time while another one executes the program
// again, which exits with 7. Exits with 0 if all argv[1] rounds ended so.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kChildren = 8, kCodeBytes = 1 << 20 };

static int turns;

static void* execute(void* nothing) {
  for (volatile int i = 0; i < turns; ++i) {
  }
  execl("/proc/self/exe", "exec_amid_misses", (char*)0);
  return nothing;
}

static void run(void) {
  unsigned char* code =
      mmap(0, kCodeBytes, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) _exit(1);
  memset(code, 0xc3, kCodeBytes);
  pthread_t thread;
  pthread_create(&thread, 0, execute, 0);
  for (int i = 0;; i = (i + 1) % kCodeBytes) ((void (*)(void))(code + i))();
}

int main(int argc, char** argv) {
  if (argc < 2) return 7;
  int wrong = 0;
  for (int round = 0; round < atoi(argv[1]); ++round) {
    for (int i = 0; i < kChildren; ++i) {
      turns = (round * kChildren + i) * 37 % 20000;
      if (fork() == 0) run();
    }
    for (int i = 0; i < kChildren; ++i) {
      int status = 0;
      if (wait(&status) <= 0 || status != 7 << 8) {
        ++wrong;
        printf("status 0x%x\n", status);
      }
    }
  }
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
