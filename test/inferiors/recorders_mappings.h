// SPDX-License-Identifier: Apache-2.0
// What the recorder has mapped in a program's memory.
#include <stdio.h>
#include <string.h>

enum { kMostMappings = 1024 };

struct mapping {
  char* begin;
  char* end;
};

struct mappings {
  struct mapping all[kMostMappings];
  int count;
};

static void read_mappings(struct mappings* out) {
  char line[512];
  FILE* maps = fopen("/proc/self/maps", "r");
  out->count = 0;
  while (out->count < kMostMappings && fgets(line, sizeof line, maps) != NULL) {
    void* begin = NULL;
    void* end = NULL;
    if (sscanf(line, "%p-%p", &begin, &end) != 2 || strstr(line, ":backtrail") == NULL) continue;
    out->all[out->count++] = (struct mapping){begin, end};
  }
  fclose(maps);
}

static int holds(const struct mappings* list, const char* address) {
  for (int i = 0; i < list->count; ++i) {
    if (list->all[i].begin <= address && address < list->all[i].end) return 1;
  }
  return 0;
}
