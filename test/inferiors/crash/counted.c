// SPDX-License-Identifier: Apache-2.0
/// @file
/// Adds numbers in a function that calls no other, then dies: what its variables were at each line
/// is known.
#include <stddef.h>

__attribute__((noinline)) static int sum_of(const volatile int* values, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += values[i];
  }
  return sum;
}

int main(void) {
  const volatile int given[] = {3, 5, 7, 11};
  int values[4];
  for (size_t k = 0; k < 4; ++k) values[k] = given[k];
  const int total = sum_of(values, 4);
  volatile int* volatile nowhere = NULL;
  *nowhere = total;
  return 0;
}
