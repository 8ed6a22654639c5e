// loads LIBRARY: opens a library, calls into it, closes it.
#include <dlfcn.h>
#include <stdio.h>

void loaded(void) {}
void called(void) {}
void unloaded(void) {}

int main(int argc, char** argv) {
  void* library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) return 1;
  int (*function)(int) = (int (*)(int))dlsym(library, "library_function");
  loaded();
  printf("library says %d\n", function(2));
  called();
  dlclose(library);
  unloaded();
  fflush(stdout);
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
