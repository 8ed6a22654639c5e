// Reads through a null pointer; built without debug information.
#include <stdlib.h>

int use(const int* number) {
  return *number;
}

int order(int count) {
  return use(count > 1 ? malloc(sizeof(int)) : NULL);
}

int main(int argc, char** argv) {
  (void)argv;
  return order(argc);
}

// SPDX-License-Identifier: Apache-2.0
