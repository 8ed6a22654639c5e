/* Arithmetic that a compiler vectorizes. */
#include <stdint.h>
#include <string.h>

#include "begin.h"

static int32_t numbers[256];
static uint8_t bytes[256];
static double reals[64];

__attribute__((noinline)) static uint32_t hash(const uint8_t* at, int n) {
  uint32_t h = 2166136261u;
  for (int i = 0; i < n; i++) h = (h ^ at[i]) * 16777619u;
  return h;
}

__attribute__((noinline)) static void fill(int step) {
  for (int i = 0; i < 256; i++) numbers[i] = numbers[i] * 3 + i * step;
  for (int i = 0; i < 256; i++) bytes[i] = (uint8_t)(numbers[i] >> 3);
  for (int i = 0; i < 64; i++) reals[i] = reals[i] * 0.5 + numbers[i];
}

__attribute__((noinline)) static int64_t total(void) {
  int64_t t = 0;
  for (int i = 0; i < 256; i++) t += numbers[i] > 40 ? numbers[i] : -bytes[i];
  return t;
}

int main(void) {
  BEGIN();
  int64_t t = 0;
  for (int step = 1; step < 8; step++) {
    fill(step);
    t += total() % (step + 3) + (int64_t)reals[step] + hash(bytes, 200);
    t = t << 3 ^ t >> 7;
    memcpy(bytes, numbers, sizeof bytes);
  }
  *(volatile int64_t*)0 = t;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
