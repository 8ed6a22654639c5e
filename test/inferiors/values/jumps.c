/* longjmp, alloca, coroutines, a smashed return address and a saved register that an unknown
   pointer changes. */
#include <alloca.h>
#include <setjmp.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

#include "begin.h"

static jmp_buf there;
static volatile int sink;
static ucontext_t home, guest;
static char guest_stack[16384];

__attribute__((noinline)) static void deep(int n) {
  char buffer[64];
  memset(buffer, n, sizeof buffer);
  sink += buffer[n];
  if (n == 0) longjmp(there, 7);
  deep(n - 1);
}

__attribute__((noinline)) static int with_alloca(int n) {
  char* bytes = alloca((size_t)n * 16 + 1);
  memset(bytes, n, (size_t)n * 16);
  int total = 0;
  for (int i = 0; i < n * 16; i++) total += bytes[i];
  return total;
}

static void in_guest(void) {
  for (int i = 0; i < 3; i++) {
    sink += i;
    swapcontext(&guest, &home);
  }
}

/* Writes a word of a stack frame through a pointer. */
__attribute__((noinline)) static void smash(uintptr_t* where, uintptr_t value) {
  *where = value;
}

__attribute__((noinline)) static int victim(int n) {
  uintptr_t* frame = __builtin_frame_address(0);
  /* Overwrites the caller's saved frame pointer through a pointer, then restores it. */
  uintptr_t old = frame[0];
  smash(frame, old ^ 16);
  sink += n;
  smash(frame, old);
  return n + 1;
}

int main(void) {
  BEGIN();
  if (setjmp(there) == 0) deep(5);
  for (int i = 1; i < 6; i++) sink += with_alloca(i);
  getcontext(&guest);
  guest.uc_stack.ss_sp = guest_stack;
  guest.uc_stack.ss_size = sizeof guest_stack;
  guest.uc_link = &home;
  makecontext(&guest, in_guest, 0);
  for (int i = 0; i < 3; i++) swapcontext(&home, &guest);
  for (int i = 0; i < 5; i++) sink += victim(i);
  uintptr_t* frame = __builtin_frame_address(0);
  smash(frame + 1, 0x1234);
  return sink == 0;
}

// SPDX-License-Identifier: Apache-2.0
