// Everyday calls: recursion, pointers, structures, libc. Prints its results.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct point {
  int x;
  int y;
  double weight;
};

int global = 7;
char text[32] = "before";
struct point corner = {3, 4, 2.5};
volatile int finished;

int fib(int n) {
  if (n < 2) return n;
  return fib(n - 1) + fib(n - 2);
}

int add(int a, int b) {
  return a + b;
}

int twice(int (*f)(int, int), int a, int b) {
  int first = f(a, b);
  int second = f(first, b);
  return first + second;
}

struct point moved(struct point p, int dx) {
  p.x += dx;
  return p;
}

void touch_global(void) {
  global += 1;
  global += 1;
}

void all_done(void) {
  finished = 1;
}

int main(int argc, char** argv) {
  int loops = argc > 1 ? atoi(argv[1]) : 3;
  int sum = 0;
  for (int i = 0; i < loops; ++i) {
    sum += add(i, global);
  }
  touch_global();
  struct point p = moved(corner, sum);
  strcpy(text, "after");
  int both = twice(add, p.x, p.y);
  printf("sum %d twice %d\n", sum, both);
  printf("fib %d\n", fib(10));
  printf("global %d text %s\n", global, text);
  all_done();
  fflush(stdout);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
