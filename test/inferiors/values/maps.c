/* mmap, mprotect, munmap and code that changes. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "begin.h"

int main(void) {
  BEGIN();
  volatile int total = 0;
  for (int i = 0; i < 4; i++) {
    char* page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    strcpy(page, "mapped");
    total += page[i];
    char* shared =
        mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    shared[3] = 'x';
    total += page[3];
    mprotect(page, 4096, PROT_READ);
    total += page[3];
    munmap(page, 8192);
  }
  /* mov $1, %eax; ret; later changed to mov $2, %eax; ret */
  unsigned char code[] = {0xb8, 1, 0, 0, 0, 0xc3};
  unsigned char* made =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(made, code, sizeof code);
  int (*function)(void) = (int (*)(void))(unsigned long)made;
  total += function();
  made[1] = 2;
  total += function();
  mprotect(made, 4096, PROT_READ | PROT_EXEC);
  total += function();
  char buffer[32];
  total += (int)readlink("/proc/self/exe", buffer, sizeof buffer);
  total += buffer[0];
  *(volatile int*)8 = total;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
