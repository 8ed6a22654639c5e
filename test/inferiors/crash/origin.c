// Dies of a pointer whose way back is known: main() got it from hand_on(), which copied what
// corrupt() had set. Other values come from the kernel, from several values, from before main(), or
// from a store through a pointer that nobody knows at the end.
#include <fcntl.h>
#include <unistd.h>

struct item {
  int* place;
  long count;
};

static int numbers[4] = {1, 2, 3, 4};
static struct item thing = {numbers, 4};
static long sum, untouched = 5;
static char letter;

static void corrupt(struct item* item) {
  item->place = (int*)0x10;
}

static void hand_on(const struct item* from, int** to) {
  *to = from->place;
}

static void add_up(long one, long other) {
  sum = one * 3 + other;
}

int main(int argc, char** argv) {
  int* p = numbers;
  const int file = open(argv[0], O_RDONLY);
  if (read(file, &letter, 1) != 1) return 1;
  add_up(argc, numbers[2]);
  corrupt(&thing);
  hand_on(&thing, &p);
  return *p + (int)untouched;
}

// SPDX-License-Identifier: Apache-2.0
