// SPDX-License-Identifier: Apache-2.0
// Direct branches from the program's file into a page that is written at run time, and changes: by
// stores, between two protections, and by another mapping at the same place.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

#define PAGE_AT 0x20000000

// The assembler resolves direct branches to an absolute address.
__asm__(
    ".text\n"
    ".set page, 0x20000000\n"
    "jump_there: jmp page\n"
    "call_there: call page\n"
    "  ret\n"
    "jump_there_if_zero: test %edi, %edi\n"
    "  jz page\n"
    "  mov $-1, %eax\n"
    "  ret\n");
int jump_there(void);
int call_there(void);
int jump_there_if_zero(int value);

enum { kRounds = 5, kCalls = 30 };
enum how { kStore, kToggle, kMap, kWays };

static uint8_t* const page = (uint8_t*)PAGE_AT;

static int map_page(void) {
  void* got = mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  return got == page;
}

// Odd rounds: mov eax, VALUE; ret. Even rounds: xor eax, eax; a loop of VALUE turns; ret.
static int write_code(int round) {
  const uint8_t constant[] = {0xb8, (uint8_t)round, 0, 0, 0, 0xc3};
  const uint8_t loop[] = {0x31, 0xc0, 0xff, 0xc0, 0x3c, (uint8_t)round, 0x75, 0xfa, 0xc3};
  if (round % 2 == 1) {
    memcpy(page, constant, sizeof constant);
  } else {
    memcpy(page, loop, sizeof loop);
  }
  return round;
}

static int change(enum how how, int round) {
  if (how == kMap && !map_page()) return -1;
  if (how == kToggle) mprotect(page, 4096, PROT_READ | PROT_WRITE);
  const int value = write_code(round);
  if (how == kToggle) mprotect(page, 4096, PROT_READ | PROT_EXEC);
  return value;
}

int main(void) {
  if (!map_page()) return 2;
  for (int how = kStore; how < kWays; ++how) {
    for (int round = 1; round <= kRounds; ++round) {
      const int value = change((enum how)how, round);
      for (int i = 0; i < kCalls; ++i) {
        if (jump_there() != value || call_there() != value) return 1;
        if (jump_there_if_zero(0) != value || jump_there_if_zero(1) != -1) return 1;
      }
    }
  }
  return 0;
}
