/* Branches for ever, but so rarely that no log fills up: each iteration writes much memory with one
 * instruction. Makes no system call. */
static char room[16 << 20];
static volatile unsigned turns;

void __attribute__((noinline)) turn(void) {
  ++turns;
}

int main(void) {
  for (;;) {
    char* at = room;
    unsigned long count = sizeof room;
    __asm__ volatile("rep stosb" : "+D"(at), "+c"(count) : "a"(turns) : "memory");
    turn();
  }
}

// SPDX-License-Identifier: Apache-2.0
