/* Reads its own addresses from every source that the kernel offers, and compares them. "again":
 * after another exec; "limited": with little address space; "limits": after limiting itself;
 * "vfork": after an exec in a child that shared this process's memory. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

static int same_as_the_kernel_tells_others(void) {
  static ElfW(auxv_t) found[64];
  const int fd = open("/proc/self/auxv", O_RDONLY);
  const ssize_t got = read(fd, found, sizeof found);
  close(fd);
  int seen = 0;
  for (size_t i = 0; i < (size_t)got / sizeof found[0]; ++i) {
    const unsigned long type = found[i].a_type;
    if (type != AT_PHDR && type != AT_ENTRY && type != AT_BASE && type != AT_SYSINFO_EHDR) continue;
    if (getauxval(type) != found[i].a_un.a_val) return 0;
    ++seen;
  }
  return seen == 4;
}

static int is_first(struct dl_phdr_info* info, size_t size, void* out) {
  (void)size;
  *(int*)out = info->dlpi_phdr == (const void*)getauxval(AT_PHDR);
  return 1;
}

/* Field numbers of proc(5). */
static int code_is_where_stat_says(void) {
  char text[1024] = "";
  FILE* file = fopen("/proc/self/stat", "r");
  if (file == NULL || fread(text, 1, sizeof text - 1, file) == 0) return 0;
  fclose(file);
  unsigned long begin = 0;
  unsigned long end = 0;
  int number = 2;
  for (char* at = strtok(strrchr(text, ')') + 1, " "); at != NULL; at = strtok(NULL, " ")) {
    ++number;
    if (number == 26) begin = strtoul(at, NULL, 10);
    if (number == 27) end = strtoul(at, NULL, 10);
  }
  const unsigned long here = (unsigned long)&code_is_where_stat_says;
  return begin <= here && here < end;
}

static void* elsewhere(void* unused) {
  return unused;
}

static int memory_can_be_had(void) {
  pthread_t id;
  if (pthread_create(&id, NULL, elsewhere, NULL) != 0 || pthread_join(id, NULL) != 0) return 0;
  char* before = sbrk(1 << 20);
  char* mapped = mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (before == (void*)-1 || mapped == MAP_FAILED) return 0;
  before[1 << 19] = 1;
  mapped[32 << 20] = 1;
  return 1;
}

/* Maps memory that nothing writes wherever the child's stack may lie. */
enum { kPieceBytes = 256 << 20, kPieces = 70, kPageBytes = 4096 };

static char* piece(int index) {
  return (char*)0x7ffffffff000 - (size_t)(index + 1) * kPieceBytes;
}

static int child_writes_only_its_own(char* self) {
  static int mapped[kPieces];
  static unsigned char resident[kPieceBytes / kPageBytes];
  for (int i = 0; i < kPieces; ++i) {
    mapped[i] =
        mmap(piece(i), kPieceBytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0) == piece(i);
  }
  const pid_t child = vfork();
  if (child == 0) {
    char* arguments[] = {self, NULL};
    execv(self, arguments);
    _exit(9);
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) return 0;
  for (int i = 0; i < kPieces; ++i) {
    if (!mapped[i]) continue;
    if (mincore(piece(i), kPieceBytes, resident) != 0) return 0;
    for (size_t page = 0; page < sizeof resident; ++page) {
      if ((resident[page] & 1) == 0) continue;
      const char* at = piece(i) + page * kPageBytes;
      for (int byte = 0; byte < kPageBytes; ++byte) {
        if (at[byte] != 0) return 0;
      }
    }
  }
  return 1;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strncmp(how, "limit", 5) == 0) {
    const struct rlimit limit = {4UL << 30, 4UL << 30};
    if (setrlimit(RLIMIT_AS, &limit) != 0) return 9;
  }
  if (strcmp(how, "limits") == 0) how = "";
  if (strcmp(how, "vfork") == 0) return child_writes_only_its_own(argv[0]) ? 0 : 5;
  if (*how != '\0') {
    char* arguments[] = {argv[0], NULL};
    execv(argv[0], arguments);
    return 9;
  }
  int first = 0;
  dl_iterate_phdr(is_first, &first);
  if (!first) return 1;
  if (!same_as_the_kernel_tells_others()) return 2;
  if (!code_is_where_stat_says()) return 3;
  if (!memory_can_be_had()) return 4;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
