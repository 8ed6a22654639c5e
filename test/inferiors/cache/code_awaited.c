// A thread waits, in a system call or in a loop, just before code that another thread changes: by
// mprotect() and stores, or through /proc/self/mem. Exits with 0 if it never ran the old code.

#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kReader = 0, kChanged = 64, kSpinner = 128, kChangedBytes = 6 };

static unsigned char* code;
static int to_waiter[2];
static int from_waiter[2];
static volatile int flag;
static int spins;
static volatile int seen;

// mov eax, VALUE / ret
static void make_changed(unsigned char* at, int value) {
  at[0] = 0xb8;
  memcpy(at + 1, &value, sizeof value);
  at[5] = 0xc3;
}

static void make_code(void) {
  // xor eax, eax / syscall / call kChanged / ret
  static const unsigned char reader[] = {0x31, 0xc0, 0x0f, 0x05, 0xe8, 55, 0, 0, 0, 0xc3};
  // l: cmp dword [rdi], 0 / je l / call kChanged / ret
  static const unsigned char spinner[] = {0x83, 0x3f, 0x00, 0x74, 0xfb, 0xe8,
                                          0xb6, 0xff, 0xff, 0xff, 0xc3};
  code = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code + kReader, reader, sizeof reader);
  memcpy(code + kSpinner, spinner, sizeof spinner);
  make_changed(code + kChanged, 0);
  mprotect(code, kPage, PROT_READ | PROT_EXEC);
}

static void* wait_and_run(void* unused) {
  for (;;) {
    char byte = 0;
    if (spins) {
      seen = ((int (*)(volatile int*))(code + kSpinner))(&flag);
      flag = 0;
    } else {
      seen = ((int (*)(long, void*, long))(code + kReader))(to_waiter[0], &byte, 1);
    }
    if (write(from_waiter[1], "d", 1) != 1) return unused;
  }
}

int main(int count, char** arguments) {
  if (count < 4 || pipe(to_waiter) != 0 || pipe(from_waiter) != 0) return 99;
  const int rounds = atoi(arguments[1]);
  spins = strcmp(arguments[2], "spin") == 0;
  const int by_file = strcmp(arguments[3], "file") == 0;
  make_code();
  const int memory = open("/proc/self/mem", O_RDWR);
  pthread_t thread;
  pthread_create(&thread, NULL, wait_and_run, NULL);
  int old = 0;
  for (int i = 1; i <= rounds; ++i) {
    unsigned char fresh[kChangedBytes];
    make_changed(fresh, i);
    if (by_file) {
      if (pwrite(memory, fresh, sizeof fresh, (off_t)(code + kChanged)) < 0) return 98;
    } else {
      mprotect(code, kPage, PROT_READ | PROT_WRITE | PROT_EXEC);
      memcpy(code + kChanged, fresh, sizeof fresh);
      mprotect(code, kPage, PROT_READ | PROT_EXEC);
    }
    char byte = 0;
    flag = 1;
    if (!spins && write(to_waiter[1], "x", 1) != 1) return 97;
    if (read(from_waiter[0], &byte, 1) != 1) return 96;
    old += seen != i;
  }
  printf("old code ran %d times of %d\n", old, rounds);
  return old != 0;
}

// SPDX-License-Identifier: Apache-2.0
