// Writes code while running: to a writable and executable page, to a page that alternates between
// the two, and to the instructions right after the store.
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

typedef int (*function)(void);

static int wrong;

static void expect(int ok, int line) {
  if (!ok) {
    wrong = line;
    fprintf(stderr, "line %d\n", line);
  }
}

// mov eax, VALUE; ret
static void write_constant(uint8_t* at, int value) {
  at[0] = 0xb8;
  memcpy(at + 1, &value, 4);
  at[5] = 0xc3;
}

static void many_writes(uint8_t* page, int rounds, int toggle) {
  for (int i = 0; i < rounds; ++i) {
    if (toggle) mprotect(page, 4096, PROT_READ | PROT_WRITE);
    write_constant(page + 64 * (i % 4), i);
    if (toggle) mprotect(page, 4096, PROT_READ | PROT_EXEC);
    expect(((function)(page + 64 * (i % 4)))() == i, __LINE__);
  }
}

// Adds up the numbers from 1 to 200 in a loop written to `page`.
static void loop_in(uint8_t* page) {
  const uint8_t code[] = {0x31, 0xc0, 0xb9, 200, 0, 0, 0, 0x01, 0xc8, 0xff, 0xc9, 0x75, 0xfa, 0xc3};
  memcpy(page, code, sizeof code);
  expect(((function)page)() == 20100, __LINE__);
}

// Writes the immediate of the instruction that follows, then runs that instruction.
static void changes_itself(uint8_t* page) {
  // mov byte [rip+1], 42 (to the immediate); mov eax, 7; ret
  const uint8_t code[] = {0xc6, 0x05, 1, 0, 0, 0, 42, 0xb8, 7, 0, 0, 0, 0xc3};
  for (int i = 0; i < 3; ++i) {
    memcpy(page, code, sizeof code);
    expect(((function)page)() == 42, __LINE__);
    write_constant(page, i);
    expect(((function)page)() == i, __LINE__);
  }
}

int main(void) {
  uint8_t* both =
      mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  uint8_t* changing = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  int shared = memfd_create("code", 0);
  if (write(shared, "", 1) != 1) return 2;
  uint8_t* writer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, shared, 0);
  uint8_t* runner = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, shared, 0);
  many_writes(both, 100, 0);
  many_writes(changing, 10, 1);
  loop_in(both);
  changes_itself(both);
  for (int i = 0; i < 10; ++i) {
    write_constant(writer, i);
    expect(((function)runner)() == i, __LINE__);
  }
  // Other code at an address that already had code.
  for (int i = 0; i < 3; ++i) {
    munmap(both, 4096);
    both = mmap(both, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    write_constant(both, 1000 + i);
    expect(((function)both)() == 1000 + i, __LINE__);
  }
  printf("rewritten %s\n", wrong ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
