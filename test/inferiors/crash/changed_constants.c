// Changes a constant in all ways in which a program can, calls mark() after each, and crashes where
// the constant is again what its file has.
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096 };

const char constant[kPage] __attribute__((aligned(4096))) = "in file";

volatile int marked;

__attribute__((noinline)) void mark(int number) {
  marked = number;
  __asm__ volatile("" ::: "memory");
}

static int fill(const char* text) {
  char* page = (char*)constant;
  if (mprotect(page, kPage, PROT_READ | PROT_WRITE) != 0) return -1;
  strcpy(page, text);
  return mprotect(page, kPage, PROT_READ);
}

int main(int argc, char** argv) {
  char* page = (char*)constant;
  const int fixed = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  (void)argc;
  printf("%p %p\n", (void*)constant, (void*)&mark);
  fflush(stdout);
  mark(0);
  if (fill("written") != 0) return 2;
  mark(1);
  if (madvise(page, kPage, MADV_DONTNEED) != 0) return 2;
  mark(2);
  if (mmap(page, kPage, PROT_READ | PROT_WRITE, fixed, -1, 0) != page) return 2;
  if (fill("private") != 0) return 2;
  mark(3);
  char* moved = mremap(page, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, page + (1L << 30));
  if (moved == MAP_FAILED) return 2;
  mark(4);
  // The file again, at its own address.
  const int file = open(argv[0], O_RDONLY);
  char bytes[kPage];
  for (off_t at = 0;; at += kPage) {
    if (pread(file, bytes, kPage, at) != kPage) return 2;
    if (memcmp(bytes, "in file", 8) != 0) continue;
    if (mmap(page, kPage, PROT_READ, MAP_PRIVATE | MAP_FIXED, file, at) != page) return 2;
    break;
  }
  mark(5);
  *(volatile int*)8 = constant[0];
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
