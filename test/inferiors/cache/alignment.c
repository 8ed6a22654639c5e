// Sets EFLAGS.AC, which makes unaligned accesses fault, in code that it has written to an odd
// address, as programs do to tell CPUs apart.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>

enum { kPage = 4096, kOdd = 0x381 };

// pushf; pop %rax; mov %rax, %rcx; xor $0x40000, %eax; push %rax; popf; pushf; pop %rax; push %rcx;
// popf; xor %rcx, %rax; ret
static const uint8_t changes_flag[] = {0x9c, 0x58, 0x48, 0x89, 0xc1, 0x35, 0,    0,    4,    0,
                                       0x50, 0x9d, 0x9c, 0x58, 0x51, 0x9d, 0x48, 0x31, 0xc8, 0xc3};

int main(void) {
  uint8_t* page =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 2;
  memcpy(page + kOdd, changes_flag, sizeof changes_flag);
  long (*changed)(void);
  uint8_t* at = page + kOdd;
  memcpy(&changed, &at, sizeof changed);
  for (int i = 0; i < 100; ++i) {
    if (changed() != 0x40000) return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
