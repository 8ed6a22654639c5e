// Uses the gs segment for itself: sets its base, reads through it, reads it back.
#include <asm/prctl.h>
#include <immintrin.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <unistd.h>

static long words[8] = {11, 22, 33, 44, 55, 66, 77, 88};
static volatile int spin;

static long read_gs(long offset) {
  long value;
  __asm__ volatile("mov %%gs:(%1), %0" : "=r"(value) : "r"(offset));
  return value;
}

int main(void) {
  int wrong = 0;
  for (int i = 0; i < 50; ++i) spin += i;
  syscall(SYS_arch_prctl, ARCH_SET_GS, words);
  for (int i = 0; i < 8; ++i) wrong += read_gs(8 * i) != 11 * (i + 1);
  unsigned long base = 0;
  syscall(SYS_arch_prctl, ARCH_GET_GS, &base);
  wrong += base != (unsigned long)words;
  syscall(SYS_arch_prctl, ARCH_SET_GS, 0);
  for (int i = 0; i < 50; ++i) spin += i;
  printf("segments %s\n", wrong ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
