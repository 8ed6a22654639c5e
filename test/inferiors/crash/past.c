// Recursion, then a loop over an array, then a null pointer: a history to step back through.
static int deeper(int left) {
  if (left == 0) return 0;
  return deeper(left - 1) + 1;
}

static volatile int total;

static int add_up(const int* numbers, int count) {
  int sum = 0;
  for (int i = 0; i < count; ++i) {
    sum += numbers[i];
    total = sum;
  }
  return sum;
}

int main(void) {
  int numbers[] = {1, 2, 3, 4};
  const int depth = deeper(5);
  const int sum = add_up(numbers, 4);
  const int* nowhere = (const int*)(long)(sum + depth - 15);
  return *nowhere;
}

// SPDX-License-Identifier: Apache-2.0
