// Writes a variable, calls mark(), loops for more instructions than values are recovered for, and
// crashes.
volatile long early, late;

__attribute__((noinline)) void mark(void) {
  __asm__ volatile("");
}

int main(void) {
  early = 5;
  mark();
  for (long i = 0; i < 2000000; ++i) late = i;
  return *(volatile int*)0;
}

// SPDX-License-Identifier: Apache-2.0
