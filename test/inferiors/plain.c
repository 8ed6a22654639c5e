/* Returns its number of arguments; prints nothing. */
#include <stdlib.h>

int constant_text(int x) {
  return x + 1;
}

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == 'x') abort();
  return constant_text(argc) - 1;
}

// SPDX-License-Identifier: Apache-2.0
