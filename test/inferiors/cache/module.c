// A library built twice, with one byte of code different.

// Part of one instruction's operand: a program that patches the code finds it by this mark.
enum { kMark = 0x5a5a5a00 };

long value(long x) {
  return x + (kMark | VALUE);
}

static long odd(long x) {
  return (x & 1) != 0 ? x * 3 + 1 : x / 2;
}

static long steps_of(long x) {
  long steps = 0;
  for (; x > 1; ++steps) x = odd(x);
  return steps;
}

// Code to translate.
long work(long x) {
  long sum = 0;
  for (long i = 1; i < 30; ++i) {
    switch ((x + i) % 5) {
      case 0:
        sum += steps_of(i);
        break;
      case 1:
        sum -= i;
        break;
      case 2:
        sum ^= x;
        break;
      default:
        sum += odd(x + i);
    }
  }
  return sum;
}

// SPDX-License-Identifier: Apache-2.0
