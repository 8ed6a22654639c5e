// Makes functions like a JIT, reports their names to perf, and crashes in one.
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { kPage = 4096, kInner = 64 };

/// sub $8,%rsp; call inner; add $8,%rsp; ret
static const unsigned char outer[] = {0x48, 0x83, 0xec, 0x08, 0xe8, kInner - 9, 0,
                                      0,    0,    0x48, 0x83, 0xc4, 0x08,       0xc3};
/// mov 0,%rax; ret
static const unsigned char inner[] = {0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0, 0xc3};

int main(void) {
  char* code =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code == MAP_FAILED) return 2;
  memcpy(code, outer, sizeof outer);
  memcpy(code + kInner, inner, sizeof inner);
  char name[64];
  snprintf(name, sizeof name, "/tmp/perf-%d.map", (int)getpid());
  FILE* map = fopen(name, "w");
  if (map == NULL) return 2;
  fprintf(map, "%lx %x Old:outer app.js:3\n", (unsigned long)code, kInner);
  fprintf(map, "%lx %zx JS:outer app.js:3\n", (unsigned long)code, sizeof outer);
  fprintf(map, "%lx %zx JS:inner <b> app.js:9\n", (unsigned long)(code + kInner), sizeof inner);
  fclose(map);
  void (*function)(void);
  memcpy(&function, &code, sizeof function);
  function();
  unlink(name);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
