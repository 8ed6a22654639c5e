// A library of one function, for programs that load libraries.
int library_value = 5;

int library_function(int n) {
  library_value += n;
  return library_value;
}

// SPDX-License-Identifier: Apache-2.0
