// Writes a function that makes a call, calls it, writes one that jumps at the same place, calls it,
// and so on; at last writes one that returns at once, and crashes.
#include <string.h>
#include <sys/mman.h>

typedef void (*action)(void);
typedef void (*performer)(action);

volatile int sum;

__attribute__((noinline)) void first(void) {
  sum += 1;
}
__attribute__((noinline)) void second(void) {
  sum += 2;
}
__attribute__((noinline)) void third(void) {
  sum += 3;
}

int main(void) {
  unsigned char* page =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 2;
  performer made;
  memcpy(&made, &page, sizeof made);
  memcpy(page, "\x53\xff\xd7\x5b\xc3", 5);  // push %rbx; call *%rdi; pop %rbx; ret
  made(first);
  memcpy(page, "\x90\xff\xe7", 3);  // nop; jmp *%rdi
  made(second);
  memcpy(page, "\x50\xff\xd7\x59\xc3", 5);  // push %rax; call *%rdi; pop %rcx; ret
  made(third);
  memcpy(page, "\xc3\xc3\xc3\xc3\xc3", 5);  // ret
  *(volatile int*)8 = sum;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
