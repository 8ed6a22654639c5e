// Twelve rounds of indirect calls, a switch and a sort with a callback: every way to end a block.
#include <stdio.h>
#include <stdlib.h>

volatile int total;

static int plus(int a, int b) {
  return a + b;
}
static int minus(int a, int b) {
  return a - b;
}
static int times(int a, int b) {
  return a * b;
}
static int (*const operations[])(int, int) = {plus, minus, times};

static int descending(const void* a, const void* b) {
  return *(const int*)b - *(const int*)a;
}

static int chosen(int round) {
  switch (round) {
    case 0:
      return 3;
    case 1:
      return plus(1, round);
    case 2:
      return 17;
    case 3:
      return minus(9, round);
    case 4:
      return 2;
    case 5:
      return times(2, round);
    case 6:
      return 11;
    default:
      return round % 2 ? 5 : 7;
  }
}

void began(void) {}
void ended(void) {}

int main(void) {
  began();
  for (int round = 0; round < 12; ++round) {
    int values[5];
    for (int i = 0; i < 5; ++i) values[i] = operations[(round + i) % 3](chosen(round), i);
    qsort(values, 5, sizeof values[0], descending);
    total += values[0];
  }
  ended();
  printf("%d\n", total);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
