// A program with a breakpoint instruction of its own, at own_trap. Nothing handles SIGTRAP.
volatile int passed;

void after_trap(void) {}

int main(void) {
  __asm__ volatile(".globl own_trap\nown_trap: int3");
  ++passed;
  after_trap();
  return passed;
}

// SPDX-License-Identifier: Apache-2.0
