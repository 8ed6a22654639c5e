// Maps a file's code shared, then private at the same place, and writes the file all the while. The
// kernel shows writes to pages that a private mapping has not copied.
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kRounds = 50 };

int main(void) {
  char path[] = "/tmp/bt-mapped-XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || unlink(path) != 0 || ftruncate(file, kPage) != 0) return 2;
  const int execute = PROT_READ | PROT_EXEC;
  void* shared = mmap(NULL, kPage, execute, MAP_SHARED, file, 0);
  if (shared == MAP_FAILED) return 2;
  void* page = mmap(shared, kPage, execute, MAP_PRIVATE | MAP_FIXED, file, 0);
  if (page != shared) return 2;
  int (*function)(void);
  memcpy(&function, &page, sizeof function);
  for (int i = 0; i < kRounds; ++i) {
    const uint8_t code[] = {0xb8, (uint8_t)i, 0, 0, 0, 0xc3};  // mov $I, %eax; ret
    if (pwrite(file, code, sizeof code, 0) != (ssize_t)sizeof code) return 2;
    if (function() != i) return 1;
  }
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
