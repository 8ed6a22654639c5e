// Mappings of files without a name, with pages that were written only through the file and pages
// that were touched, and a mapping longer than its file. Then it crashes.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kLarge = 1 << 20, kSmall = 4 * kPage };

static char* map(int file, int bytes, int how) {
  return mmap(0, bytes, PROT_READ | PROT_WRITE, how, file, 0);
}

char *large_shared, *large_private, *small_shared, *small_private, *beyond_end;

int main(void) {
  const int file = memfd_create("untouched", 0);
  if (ftruncate(file, kLarge) != 0) return 1;
  large_shared = map(file, kLarge, MAP_SHARED);
  large_private = map(file, kLarge, MAP_PRIVATE);
  small_shared = map(file, kSmall, MAP_SHARED);
  small_private = map(file, kSmall, MAP_PRIVATE);
  const int short_file = memfd_create("short", 0);
  if (pwrite(short_file, "end", 4, kPage) != 4) return 1;
  beyond_end = map(short_file, kSmall, MAP_SHARED);
  for (long at = 0; at < kLarge; at += kPage) {
    if (pwrite(file, "unseen", 7, at) != 7) return 1;
  }
  strcpy(large_shared + 8 * kPage, "seen");
  volatile char sum = large_private[8 * kPage];
  sum += small_private[0];
  return *(volatile int*)0 + sum;
}

// SPDX-License-Identifier: Apache-2.0
