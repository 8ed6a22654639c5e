/* Maps two pages, unmaps the second, and traps with the border's address in a register. */
#define _GNU_SOURCE
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

int main(void) {
  size_t page = (size_t)sysconf(_SC_PAGESIZE);
  char* p = mmap(0, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(p, 'b', 2 * page);
  munmap(p + page, page);
  /* The tracer finds the border in rax. */
  __asm__ volatile("int3" : : "a"(p + page) : "memory");
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
