// Calls more functions than a small indirect-branch table has room for, each several times, in two
// threads. Function I of kFunctions is at kPlace + 16 * I; the first thread calls I * kStride
// modulo kFunctions for I from 0 on.
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

enum { kFunctions = 32768, kStride = 12345, kRounds = 2 };
#define kPlace ((unsigned char*)0x620000000000)

typedef int (*Function)(int);

static int sum_of(int begin, int stride) {
  unsigned sum = 0;
  for (int round = 0; round < kRounds; ++round) {
    for (int i = 0; i < kFunctions; ++i) {
      const unsigned which = ((unsigned)begin + (unsigned)i * (unsigned)stride) % kFunctions;
      sum += (unsigned)((Function)(uintptr_t)(kPlace + 16 * which))(i);
    }
  }
  return (int)(sum & 0x7fffffff);
}

static void* other_way(void* unused) {
  (void)unused;
  return (void*)(intptr_t)sum_of(kFunctions / 2, kFunctions - 1);
}

int main(void) {
  const size_t bytes = 16UL * kFunctions;
  unsigned char* code = mmap(kPlace, bytes, PROT_READ | PROT_WRITE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
  if (code != kPlace) return 1;
  unsigned expected = 0;
  for (int i = 0; i < kFunctions; ++i) {
    const unsigned char function[] = {0x8d, 0x47, (unsigned char)(i % 100), 0xc3};
    memcpy(code + 16 * i, function, sizeof function);  // lea eax, [rdi+N]; ret
    expected += kRounds * (unsigned)(i + i % 100);
  }
  if (mprotect(code, bytes, PROT_READ | PROT_EXEC) != 0) return 2;
  pthread_t thread;
  void* other = NULL;
  if (pthread_create(&thread, NULL, other_way, NULL) != 0) return 3;
  const int sum = sum_of(0, kStride);
  if (pthread_join(thread, &other) != 0) return 4;
  if (sum != (int)(expected & 0x7fffffff)) return 5;
  return (int)(intptr_t)other == sum ? 0 : 6;
}

// SPDX-License-Identifier: Apache-2.0
