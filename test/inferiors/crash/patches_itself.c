// Calls a function of its own file, patches it while it is writable and not executable, calls it
// again, and so on, and crashes where it is again what the file has. Each version has other
// instructions.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kPage = 4096 };

__asm__(
    ".section .patched, \"ax\", @progbits\n"
    ".balign 4096\n"
    ".globl add_some\n"
    ".type add_some, @function\n"
    "add_some: mov %edi, %eax\n"
    "  add $1, %eax\n"
    "  nop\n"
    "  ret\n"
    "  nop\n"
    ".size add_some, . - add_some\n"
    ".balign 4096\n"
    ".text\n");
int add_some(int number);

int sum = 0;

static int patch(const char* code) {
  char* page = (char*)&add_some;
  if (mprotect(page, kPage, PROT_READ | PROT_WRITE) != 0) return -1;
  memcpy(page, code, 8);
  return mprotect(page, kPage, PROT_READ | PROT_EXEC);
}

int main(void) {
  printf("%p\n", (void*)&add_some);
  fflush(stdout);
  sum = add_some(sum);
  // lea 2(%rdi), %eax; nopl (%rax); ret
  if (patch("\x8d\x47\x02\x0f\x1f\x00\xc3\x90") != 0) return 2;
  sum = add_some(sum);
  // push %rdi; pop %rax; add $3, %eax; nop; ret
  if (patch("\x57\x58\x83\xc0\x03\x90\xc3\x90") != 0) return 2;
  sum = add_some(sum);
  // xchg %edi, %eax; sub $-4, %eax; xchg %ax, %ax; ret
  if (patch("\x97\x83\xe8\xfc\x66\x90\xc3\x90") != 0) return 2;
  sum = add_some(sum);
  // At last what the file has.
  if (patch("\x89\xf8\x83\xc0\x01\x90\xc3\x90") != 0) return 2;
  *(volatile int*)8 = sum;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
