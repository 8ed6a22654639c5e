#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  if (argc > 1 && !strcmp(argv[1], "crashes")) abort();
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
