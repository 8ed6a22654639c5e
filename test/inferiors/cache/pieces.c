// Unmaps a page of its code, then branches a lot from one side of the hole to the other.
#include <sys/mman.h>

enum { kFunctions = 64, kPage = 4096 };

__asm__(
    ".pushsection .text\n"
    ".p2align 12\n"
    "lower:\n"
    ".rept 64\n"
    ".p2align 4\n"
    "test $1, %dil\n"
    "jnz upper\n"
    "lea (%rdi), %eax\n"
    "ret\n"
    ".endr\n"
    ".p2align 12\n"
    "hole:\n"
    ".fill 4096, 1, 0xcc\n"
    "upper:\n"
    "lea 1(%rdi), %eax\n"
    "ret\n"
    ".p2align 12\n"
    ".popsection\n");
extern char lower[];
extern char hole[];

typedef int (*Function)(int);

int main(void) {
  if (mprotect(hole, kPage, PROT_NONE) != 0) return 1;
  int sum = 0;
  for (int i = 0; i < kFunctions; ++i) {
    for (int argument = 0; argument < 4; ++argument) sum += ((Function)(lower + 16L * i))(argument);
  }
  return sum == kFunctions * (0 + 2 + 2 + 4) ? 0 : 2;
}

// SPDX-License-Identifier: Apache-2.0
