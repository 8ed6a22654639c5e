// A small compiler of functions that return a number: it writes code, runs it and writes it again.
// The argument names the kind of memory.
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*function)(void);
typedef int (*function_of)(void*);

static int wrong;

static void expect(int ok, int line) {
  if (ok || wrong) return;
  wrong = line;
  fprintf(stderr, "line %d\n", line);
}

static uint8_t* map(int protection) {
  return mmap(NULL, 8192, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

// mov eax, VALUE; ret
static void write_constant(uint8_t* at, int value) {
  const uint8_t code[] = {0xb8, 0, 0, 0, 0, 0xc3};
  memcpy(at, code, sizeof code);
  memcpy(at + 1, &value, sizeof value);
}

// xor eax, eax; mov ecx, TURNS; again: add eax, ADDEND; dec ecx; jnz again; ret
static void write_loop(uint8_t* at, int turns, int8_t addend) {
  const uint8_t code[] = {0x31, 0xc0, 0xb9, 0,    0,    0,    0,   0x83,
                          0xc0, 0,    0xff, 0xc9, 0x75, 0xf9, 0xc3};
  memcpy(at, code, sizeof code);
  memcpy(at + 3, &turns, sizeof turns);
  at[9] = (uint8_t)addend;
}

static void rewrite(int rounds) {
  uint8_t* page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
  for (int i = 0; i < rounds; ++i) {
    uint8_t* at = page + 4090 + i % 7;  // also across the border of two pages
    write_constant(at, i);
    expect(((function)at)() == i, __LINE__);
    if (i % 50 != 0) continue;
    write_loop(page + 64, 1000, (int8_t)(i % 100));
    expect(((function)(page + 64))() == 1000 * (int8_t)(i % 100), __LINE__);
  }
}

static void loop_long(void) {
  uint8_t* page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
  write_loop(page, 3000000, 3);
  expect(((function)page)() == 9000000, __LINE__);
}

// Two mappings of one memory file: code that runs is never written at its own address.
static void two_mappings(int rounds) {
  const int file = memfd_create("code", 0);
  if (ftruncate(file, 4096) != 0) exit(2);
  uint8_t* writer = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  uint8_t* runner = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_SHARED, file, 0);
  for (int i = 0; i < rounds; ++i) {
    write_constant(writer + 16 * (i % 5), i);
    expect(((function)(runner + 16 * (i % 5)))() == i, __LINE__);
  }
}

static void toggle(int rounds) {
  uint8_t* page = map(PROT_READ | PROT_WRITE);
  for (int i = 0; i < rounds; ++i) {
    mprotect(page, 8192, PROT_READ | PROT_WRITE);
    write_constant(page, i);
    write_loop(page + 4096, 50, (int8_t)(i % 100));
    mprotect(page, 8192, PROT_READ | PROT_EXEC);
    expect(((function)page)() == i, __LINE__);
    expect(((function)(page + 4096))() == 50 * (int8_t)(i % 100), __LINE__);
  }
}

// The instruction to be written comes right after the one that writes it.
static void change_itself(void) {
  uint8_t* page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
  const uint8_t by_register[] = {0xc6, 0x07, 42, 0xb8, 7,
                                 0,    0,    0,  0xc3};                  // mov byte [rdi], 42; ...
  const uint8_t by_string[] = {0xb0, 43, 0xaa, 0xb8, 7, 0, 0, 0, 0xc3};  // mov al, 43; stosb; ...
  for (int i = 0; i < 10; ++i) {
    memcpy(page, by_register, sizeof by_register);
    expect(((function_of)page)(page + 4) == 42, __LINE__);
    memcpy(page, by_string, sizeof by_string);
    expect(((function_of)page)(page + 4) == 43, __LINE__);
  }
}

static uint8_t* shared_code;
static atomic_int published, done;

static void* run_published(void* unused) {
  (void)unused;
  while (!atomic_load(&done)) {
    const int least = atomic_load(&published);
    expect(((function)shared_code)() >= least, __LINE__);
  }
  return NULL;
}

// One thread changes a number in code that others run.
static void threads(int rounds) {
  shared_code = map(PROT_READ | PROT_WRITE | PROT_EXEC) + 3;  // the number is aligned
  write_constant(shared_code, 0);
  pthread_t workers[3];
  for (int i = 0; i < 3; ++i) pthread_create(&workers[i], NULL, run_published, NULL);
  for (int i = 1; i < rounds; ++i) {
    atomic_store((_Atomic int*)(void*)(shared_code + 1), i);
    atomic_store(&published, i);
  }
  atomic_store(&done, 1);
  for (int i = 0; i < 3; ++i) pthread_join(workers[i], NULL);
}

static void fork_with_code(void) {
  uint8_t* page = map(PROT_READ | PROT_WRITE | PROT_EXEC);
  write_constant(page, 1);
  expect(((function)page)() == 1, __LINE__);
  const pid_t child = fork();
  if (child == 0) {
    write_constant(page, 2);
    _exit(((function)page)() == 2 ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  expect(status == 0, __LINE__);
  expect(((function)page)() == 1, __LINE__);
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "rewrite";
  const int rounds = argc > 2 ? atoi(argv[2]) : 1000;
  if (strcmp(kind, "rewrite") == 0) rewrite(rounds);
  if (strcmp(kind, "loop") == 0) loop_long();
  if (strcmp(kind, "mappings") == 0) two_mappings(rounds);
  if (strcmp(kind, "toggle") == 0) toggle(rounds);
  if (strcmp(kind, "itself") == 0) change_itself();
  if (strcmp(kind, "threads") == 0) threads(rounds);
  if (strcmp(kind, "fork") == 0) fork_with_code();
  printf("%s %s\n", kind, wrong ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
