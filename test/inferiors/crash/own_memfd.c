// SPDX-License-Identifier: Apache-2.0
// Has a memfd of the name that the recorder's memory has, and crashes with a text in it.
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096 };

static int* volatile nowhere;

int main(void) {
  const int file = memfd_create("backtrail", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, kPage) != 0) return 2;
  char* text = mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (text == MAP_FAILED) return 2;
  strcpy(text, "the program's own");
  *nowhere = 1;
  return 0;
}
