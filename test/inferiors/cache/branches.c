// Every kind of branch a compiler makes: tables, pointers, recursion, tail calls, computed gotos,
// a sort with callbacks, strings, numbers in text, floating point.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int chosen(int n) {
  switch (n % 9) {
    case 0:
      return 3;
    case 1:
      return n * 2;
    case 2:
      return n - 7;
    case 3:
      return n ^ 55;
    case 4:
      return n << 1;
    case 5:
      return 9;
    case 6:
      return -n;
    default:
      return n;
  }
}

static int interpret(const unsigned char* code) {
  static const void* const labels[] = {&&add, &&twice, &&minus, &&stop};
  int value = 1;
  goto* labels[*code];
add:
  value += 3;
  goto* labels[*++code];
twice:
  value *= 2;
  goto* labels[*++code];
minus:
  value -= 1;
  goto* labels[*++code];
stop:
  return value;
}

static int sum_of(int count, ...) {
  va_list list;
  va_start(list, count);
  int sum = 0;
  while (count-- > 0) sum += va_arg(list, int);
  va_end(list);
  return sum;
}

static int ackermann(int m, int n) {
  if (m == 0) return n + 1;
  return n == 0 ? ackermann(m - 1, 1) : ackermann(m - 1, ackermann(m, n - 1));
}

static int odd(int n);
static int even(int n) {
  return n == 0 ? 1 : odd(n - 1);
}
static int odd(int n) {
  return n == 0 ? 0 : even(n - 1);
}

static int compare(const void* a, const void* b) {
  return *(const int*)a - *(const int*)b;
}

static jmp_buf out;
static void deep(volatile int n) {
  if (n == 0) longjmp(out, 7);
  deep(n - 1);
}

static int jumped_out(void) {
  const int jumped = setjmp(out);
  if (jumped == 0) deep(200);
  return jumped;
}

int main(int argc, char** argv) {
  const char* which = argc > 1 ? argv[1] : "all";
  const int all = strcmp(which, "all") == 0;
  long result = 0;
  if (all || strcmp(which, "switch") == 0)
    for (int i = 0; i < 50; ++i) result += chosen(i);
  if (all || strcmp(which, "goto") == 0)
    result += interpret((const unsigned char*)"\0\1\2\0\1\1\2\3");
  if (all || strcmp(which, "varargs") == 0) result += sum_of(6, 1, 2, 3, 4, 5, 6);
  if (all || strcmp(which, "recursion") == 0) result += ackermann(2, 6);
  if (all || strcmp(which, "tail") == 0) result += even(101);
  if (all || strcmp(which, "sort") == 0) {
    int values[80];
    for (int i = 0; i < 80; ++i) values[i] = (i * 71) % 83;
    qsort(values, 80, sizeof *values, compare);
    int wanted = 40;
    result += (int*)bsearch(&wanted, values, 80, sizeof *values, compare) - values;
  }
  if (all || strcmp(which, "strings") == 0) {
    char text[256] = "", copy[256];
    for (int i = 0; i < 12; ++i) strcat(text, "needle in hay ");
    memcpy(copy, text, sizeof text);
    result += strcmp(copy, text) == 0 ? (long)strlen(copy) : 0;
    result += strstr(text, "hay n") - text + (strrchr(text, 'd') - text);
    memmove(copy + 3, copy, 200);
    for (char* word = strtok(text, " "); word != NULL; word = strtok(NULL, " ")) ++result;
  }
  if (all || strcmp(which, "numbers") == 0) {
    char text[128];
    snprintf(text, sizeof text, "%d %x %s %.9g %ld", 42, 255, "text", 2.5e10 / 3, result);
    result += strtol("12345", NULL, 10) + (long)strtod("2.5e3", NULL) + text[5];
  }
  if (all || strcmp(which, "float") == 0)
    for (int i = 1; i < 20; ++i) result += (long)(sin(i) * 100 + pow(i, 1.5) + exp(i / 9.0));
  if (all || strcmp(which, "longjmp") == 0) result += jumped_out();
  if (all || strcmp(which, "heap") == 0) {
    void* blocks[64];
    for (int i = 0; i < 64; ++i) blocks[i] = malloc((size_t)(i * 37 + 1));
    for (int i = 0; i < 64; i += 2) free(blocks[i]);
    for (int i = 0; i < 64; i += 2) blocks[i] = calloc(1, (size_t)(i * 91 + 1));
    for (int i = 0; i < 64; ++i) free(blocks[i]);
    result += 1;
  }
  printf("%s %ld\n", which, result);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
