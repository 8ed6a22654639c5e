// SPDX-License-Identifier: Apache-2.0
/* Replaces code that has run by system calls of another form, INT 0x80: by mprotect, mremap, mmap2
 * and munmap. */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kRounds = 8, kCalls = 20 };
/* Numbers of 32-bit programs. */
enum { kMunmap = 91, kMprotect = 125, kMremap = 163, kMmap2 = 192 };

static const uintptr_t kCode = 0x30000000;
static const uintptr_t kNext = 0x31000000;

static long call(long number, long a, long b, long c, long d, long e) {
  long result;
  __asm__ volatile(
      "push %%rbp\n"
      "xor %%ebp, %%ebp\n"
      "int $0x80\n"
      "pop %%rbp"
      : "=a"(result)
      : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
      : "memory", "r8", "r9", "r10", "r11");
  return result;
}

/* mov $VALUE, %eax; ret */
static void write_code(uintptr_t at, int value) {
  const uint8_t code[] = {0xb8, (uint8_t)value, 0, 0, 0, 0xc3};
  memcpy((void*)at, code, sizeof code);
}

static void expect_value(int value) {
  int (*function)(void);
  memcpy(&function, &kCode, sizeof function);
  for (int i = 0; i < kCalls; ++i) {
    if (function() != value) _exit(1);
  }
}

static void map(uintptr_t at, int protection) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  if (mmap((void*)at, kPage, protection, flags, -1, 0) != (void*)at) _exit(2);
}

int main(void) {
  const int write = PROT_READ | PROT_WRITE;
  const int execute = PROT_READ | PROT_EXEC;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  map(kCode, write);
  for (int i = 1; i < kRounds; ++i) {
    /* The first round lets the recorder see that there is code. */
    write_code(kCode, i);
    if (i == 1 && mprotect((void*)kCode, kPage, execute) != 0) return 2;
    if (i != 1 && call(kMprotect, kCode, kPage, execute, 0, 0) != 0) return 2;
    expect_value(i);
    if (call(kMprotect, kCode, kPage, write, 0, 0) != 0) return 2;
  }
  for (int i = kRounds; i < 2 * kRounds; ++i) {
    map(kNext, write);
    write_code(kNext, i);
    if (mprotect((void*)kNext, kPage, execute) != 0) return 2;
    const int how = MREMAP_MAYMOVE | MREMAP_FIXED;
    if (call(kMremap, kNext, kPage, kPage, how, kCode) != (long)kCode) return 2;
    expect_value(i);
  }
  for (int i = 2 * kRounds; i < 3 * kRounds; ++i) {
    if (i % 2 == 0 && call(kMunmap, kCode, kPage, 0, 0, 0) != 0) return 2;
    const int all = write | PROT_EXEC;
    if (call(kMmap2, kCode, kPage, all, flags, -1) != (long)kCode) return 2;
    write_code(kCode, i);
    if (mprotect((void*)kCode, kPage, execute) != 0) return 2;
    expect_value(i);
  }
  return 0;
}
