/* Branches that mostly go one way, and later the other way; tail() repeats the same work some more
 * times. The program yields now and then, so that a reader of its log gets to run even on a
 * single CPU. */
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

static uint32_t state = 1;
static uint32_t total;

static uint32_t next(void) {
  state = state * 1664525u + 1013904223u;
  return state >> 8;
}

typedef uint32_t (*operation)(uint32_t);
static uint32_t __attribute__((noinline)) add(uint32_t x) {
  return x + 7;
}
static uint32_t __attribute__((noinline)) shift(uint32_t x) {
  return x << (x & 7);
}
static uint32_t __attribute__((noinline)) turn(uint32_t x) {
  return x >> 3 | x << 29;
}
static uint32_t __attribute__((noinline)) same(uint32_t x) {
  return x;
}
static operation volatile operations[4] = {add, shift, turn, same};

static uint32_t __attribute__((noinline)) pick(uint32_t x, uint32_t bias) {
  if ((x & 15) < bias) return x * 3;
  return x ^ bias;
}

static uint32_t __attribute__((noinline)) deep(uint32_t depth, uint32_t x) {
  if (depth == 0) return x;
  return deep(depth - 1, x + depth) ^ depth;
}

static void __attribute__((noinline)) once(uint32_t bias) {
  const uint32_t x = next();
  switch (x % 6) {
    case 0:
      total += pick(x, bias);
      break;
    case 1:
      total ^= x;
      break;
    case 2:
      total = total << (x & 15) | 1;
      break;
    case 3:
      total -= 3;
      break;
    case 4:
      total += deep(x & 3, x);
      break;
    default:
      total *= 5;
  }
  const uint32_t which = (x >> 8 & 15) < bias ? 0 : x >> 12 & 3;
  total += operations[which](x);
  for (uint32_t i = 0; i < (x & 3); ++i) total += pick(x >> i, bias);
}

static void __attribute__((noinline)) tail(void) {
  for (uint32_t i = 0; i < 150; ++i) once(i % 20 < 10 ? 14 : 2);
}

int main(int argc, char** argv) {
  const uint32_t rounds = argc > 1 ? (uint32_t)atoi(argv[1]) : 60000;
  for (uint32_t phase = 0; phase < 4; ++phase) {
    for (uint32_t i = 0; i < rounds; ++i) {
      once(phase % 2 == 0 ? 14 : 2);
      if (i % 256 == 0) sched_yield();
    }
  }
  raise(SIGWINCH); /* reported to a debugger */
  tail();
  printf("%u\n", total);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
