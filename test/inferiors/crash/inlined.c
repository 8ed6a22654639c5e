// Functions inlined at several places, into each other too, and around a call.
#define INLINE inline __attribute__((always_inline))

int* volatile nowhere;
volatile int sink;

__attribute__((noinline)) void outside(int n) {
  sink = sink + n;
}

static INLINE void inner(int n) {
  sink = sink + n;
  if (n & 1) sink = sink - 1;
}

static INLINE void outer(int n) {
  inner(n);
  outside(n);
  inner(n + 1);
}

__attribute__((noinline)) void work(int n) {
  outer(n);
  sink = sink ^ 1;
  if (n > 2) outer(2 * n);
}

int main(void) {
  work(1);
  work(3);
  inner(8);
  return *nowhere;
}

// SPDX-License-Identifier: Apache-2.0
