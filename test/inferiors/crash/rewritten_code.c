// Adds numbers by functions that it writes at one place, one after the other, of different lengths,
// and crashes.
#include <string.h>
#include <sys/mman.h>

typedef int (*function)(int);

int sum = 0;

// Odd ADDENDs: lea ADDEND(%rdi), %eax; ret. Even ones: mov %edi, %eax; add $ADDEND, %eax; ret.
static void write_addition(unsigned char* at, unsigned char addend) {
  const unsigned char odd[] = {0x8d, 0x47, addend, 0xc3};
  const unsigned char even[] = {0x89, 0xf8, 0x83, 0xc0, addend, 0xc3};
  if (addend % 2 == 1) {
    memcpy(at, odd, sizeof odd);
  } else {
    memcpy(at, even, sizeof even);
  }
}

int main(void) {
  unsigned char* page =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return 2;
  function made;
  memcpy(&made, &page, sizeof made);
  for (unsigned char addend = 1; addend <= 6; ++addend) {
    write_addition(page, addend);
    sum = made(sum);
  }
  // No call of this one.
  write_addition(page, 9);
  *(volatile int*)8 = sum;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
