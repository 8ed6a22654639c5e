/* printf and floating point; ends by exit. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "begin.h"

int main(void) {
  BEGIN();
  char out[200];
  double total = 0;
  int length = 0;
  for (int i = 1; i < 12; i++) {
    total += (double)i * 1.25 - (double)(i % 3) / 7;
    length += snprintf(out, sizeof out, "%d %s %x %.3f %c", i * 1000, "word", i, total, 'a' + i);
    float small = (float)total;
    length += (int)(small * 2);
  }
  return length == 0 ? (int)strlen(out) : 0;
}

// SPDX-License-Identifier: Apache-2.0
