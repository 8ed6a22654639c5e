// Code from files: at the same addresses in each run, but not always with the same bytes.
//
//   modules call CALLS MODULE       calls MODULE through CALLS, a million times
//   modules patch MODULE VALUE      changes MODULE's code before it runs
//   modules reload TIMES MODULE...  loads, uses and unloads each, again and again
//   modules remove TIMES MODULE...  likewise, and deletes the files at last
//
// Exits with the low byte of the sum that the last module's value() adds up.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef long function(long);

static void* load(const char* path) {
  void* library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    exit(100);
  }
  return library;
}

static function* named(void* library, const char* name) {
  return (function*)(uintptr_t)dlsym(library, name);
}

static int call(char** arguments) {
  void* calls = load(arguments[0]);
  function* value = named(load(arguments[1]), "value");
  typedef long caller(function*, long);
  caller* call_often = (caller*)(uintptr_t)dlsym(calls, "call_often");
  return (int)(call_often(value, 1000000) & 0xff);
}

static int patch(char** arguments) {
  function* value = named(load(arguments[0]), "value");
  unsigned char* at = (unsigned char*)(uintptr_t)value;
  void* page = at - (uintptr_t)at % 4096;
  if (mprotect(page, 8192, PROT_READ | PROT_WRITE) != 0) return 101;
  const unsigned char mark[] = {0x5a, 0x5a, 0x5a};
  while (memcmp(at + 1, mark, sizeof mark) != 0) ++at;
  *at = (unsigned char)atoi(arguments[1]);
  if (mprotect(page, 8192, PROT_READ | PROT_EXEC) != 0) return 102;
  return (int)(value(0) & 0xff);
}

static int reload(char** arguments) {
  int last = 0;
  for (int times = atoi(arguments[0]); times > 0; --times) {
    for (char** module = arguments + 1; *module != NULL; ++module) {
      void* library = load(*module);
      last = (int)(named(library, "value")(0) & 0xff);
      if (named(library, "work")(7) != named(library, "work")(7)) return 103;
      dlclose(library);
    }
  }
  return last;
}

int main(int count, char** arguments) {
  if (count < 4) return 104;
  if (strcmp(arguments[1], "call") == 0) return call(arguments + 2);
  if (strcmp(arguments[1], "patch") == 0) return patch(arguments + 2);
  if (strcmp(arguments[1], "remove") == 0) {
    const int last = reload(arguments + 2);
    for (char** module = arguments + 3; *module != NULL; ++module) remove(*module);
    return last;
  }
  return reload(arguments + 2);
}

// SPDX-License-Identifier: Apache-2.0
