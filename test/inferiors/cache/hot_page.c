// Calls a page by a direct call, very often, and writes it again.
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kCalls = 400000, kVersions = 3 };

static uint8_t* const page = (uint8_t*)0x20000000;

// The assembler resolves the call to an absolute address.
__asm__(
    ".text\n"
    ".set page, 0x20000000\n"
    "add_up: xor %esi, %esi\n"
    "1: call page\n"
    "  add %eax, %esi\n"
    "  dec %edi\n"
    "  jnz 1b\n"
    "  mov %esi, %eax\n"
    "  ret\n");
int add_up(int calls);

int main(void) {
  void* got = mmap(page, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
  if (got != page) return 2;
  for (int version = 1; version <= kVersions; ++version) {
    const uint8_t code[] = {0xb8, (uint8_t)version, 0, 0, 0, 0xc3};  // mov $VERSION, %eax; ret
    memcpy(page, code, sizeof code);
    if (add_up(kCalls) != kCalls * version) return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
