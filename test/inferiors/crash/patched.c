// Makes code of its file writable and then executable again, as for a patch, and crashes. With
// "thread" another thread does so.
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kPage = 4096 };

__attribute__((noinline)) int answer(void) {
  __asm__ volatile("" ::: "memory");
  return 42;
}

static void* change_protection(void* unused) {
  char* page = (char*)((uintptr_t)answer / kPage * kPage);
  (void)unused;
  if (mprotect(page, kPage, PROT_READ | PROT_WRITE | PROT_EXEC) != 0) return page;
  return mprotect(page, kPage, PROT_READ | PROT_EXEC) != 0 ? page : NULL;
}

int main(int argc, char** argv) {
  int sum = answer();
  if (argc > 1 && strcmp(argv[1], "thread") == 0) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, change_protection, NULL) != 0) return 2;
    pthread_join(thread, NULL);
  } else {
    change_protection(NULL);
  }
  sum += answer();
  *(volatile int*)8 = sum;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
