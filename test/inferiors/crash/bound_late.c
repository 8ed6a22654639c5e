// SPDX-License-Identifier: Apache-2.0
/// @file
/// Dies after the first calls of library functions: the dynamic linker looks them up then, and has
/// saved the registers in an area whose place on the stack is aligned.
#include <stddef.h>
#include <stdlib.h>

static int sum_to(int n) {
  int sum = 0;
  for (int i = 0; i <= n; ++i) sum += i;
  return sum;
}

int main(void) {
  const int few = sum_to(4);
  const int many = sum_to(8);
  const int all = abs(few - many) + atoi("7");
  volatile int* volatile nowhere = NULL;
  *nowhere = all;
  return 0;
}
