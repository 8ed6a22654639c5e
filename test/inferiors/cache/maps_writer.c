// SPDX-License-Identifier: Apache-2.0
/* Treats mappings that it did not make as its own, as programs do that unpack, collect or copy
 * their memory: it changes every mapping of a memfd that /proc/self/maps shows. The argument says
 * how. Another thread works meanwhile. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/shm.h>
#include <unistd.h>

enum { kMost = 512, kWork = 40, kPage = 4096 };

struct Mapping {
  char* begin;
  size_t bytes;
};

static struct Mapping mappings[kMost];
static int count;
static atomic_int ends;

static void read_mappings(void) {
  FILE* maps = fopen("/proc/self/maps", "r");
  char line[512];
  while (count < kMost && fgets(line, sizeof line, maps) != NULL) {
    void* begin = NULL;
    void* end = NULL;
    if (sscanf(line, "%p-%p", &begin, &end) != 2 || strstr(line, "memfd:") == NULL) continue;
    mappings[count++] = (struct Mapping){begin, (size_t)((char*)end - (char*)begin)};
  }
  fclose(maps);
}

static int twice(int x) {
  return 2 * x;
}
static int thrice(int x) {
  return 3 * x;
}
static int negated(int x) {
  return -x;
}

static int work(void) {
  int (*volatile functions[])(int) = {twice, thrice, negated, abs};
  int sum = 0;
  for (int i = 0; i < kWork; ++i) sum += functions[i % 4](i);
  return sum;
}

static void* work_on(void* expected) {
  while (!ends) {
    if (work() != *(int*)expected) exit(4);
  }
  return NULL;
}

static void write_same(const struct Mapping* at) {
  for (size_t i = 0; i < at->bytes; i += kPage) {
    volatile char* byte = at->begin + i;
    *byte = *byte;
  }
}

static void write_rubbish(const struct Mapping* at) {
  memset(at->begin, 0x5a, kPage);
}

/* Writes rubbish through the file of the mapping, if the program may open that. */
static void write_file(const struct Mapping* at) {
  static char rubbish[1 << 20];
  char path[64];
  snprintf(path, sizeof path, "/proc/self/map_files/%lx-%lx", (unsigned long)at->begin,
           (unsigned long)(at->begin + at->bytes));
  const int file = open(path, O_RDWR);
  if (file < 0) return;
  if (ftruncate(file, 0) == 0 || ftruncate(file, 1L << 40) == 0) exit(5);
  memset(rubbish, 0x5a, sizeof rubbish);
  (void)!pwrite(file, rubbish, sizeof rubbish, 0);
  close(file);
}

/* Makes a system call of a 32-bit program. */
static int old_call(int number, long a, long b, long c, long d, long e) {
  long result;
  __asm__ volatile("int $0x80"
                   : "=a"(result)
                   : "a"(number), "b"(a), "c"(b), "d"(c), "S"(d), "D"(e)
                   : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

static int old_calls_reach(const struct Mapping* at) {
  return (uintptr_t)at->begin >> 32 == 0;
}

static void change_by_old_calls(const struct Mapping* at) {
  enum { kMunmap = 91, kMprotect = 125 };
  const long begin = (long)at->begin;
  const long bytes = (long)at->bytes;
  if (!old_calls_reach(at)) return;
  if (old_call(kMprotect, begin, bytes, PROT_NONE, 0, 0) != -ENOMEM) exit(3);
  if (old_call(kMunmap, begin, bytes, 0, 0, 0) != 0) exit(3);
}

/* Attaches a segment over the first page by the call that `how` names. */
static void attach(const char* how, const struct Mapping* at) {
  enum { kIpc = 117, kShmat = 397, kIpcAttach = 21 };
  const long begin = (long)at->begin;
  const int segment = shmget(IPC_PRIVATE, kPage, IPC_CREAT | 0600);
  if (segment < 0) exit(2);
  char* elsewhere = shmat(segment, NULL, 0);
  shmctl(segment, IPC_RMID, NULL);
  long result = begin;
  if (strcmp(how, "attaches") == 0) {
    result = (long)shmat(segment, at->begin, SHM_REMAP);
  } else if (!old_calls_reach(at)) {
    return;
  } else if (strcmp(how, "attaches_old") == 0) {
    result = old_call(kShmat, segment, begin, SHM_REMAP, 0, 0);
  } else {
    /* The kernel writes the address to the segment. */
    if (old_call(kIpc, kIpcAttach, segment, SHM_REMAP, begin, begin) != 0) exit(3);
    if (*(uint32_t*)at->begin != (uint32_t)begin) exit(3);
  }
  if (result != begin) exit(3);
  write_rubbish(at);
  if (elsewhere[kPage - 1] != 0x5a) exit(3);
}

/* Replaces a mapping by mmap() with its arguments in memory. */
static void map_by_old_call(const struct Mapping* at) {
  enum { kMmap = 90 };
  if (!old_calls_reach(at)) return;
  uint32_t* arguments =
      mmap(NULL, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
  if (arguments == MAP_FAILED) exit(2);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  arguments[0] = (uint32_t)(uintptr_t)at->begin;
  arguments[1] = kPage;
  arguments[2] = PROT_READ | PROT_WRITE;
  arguments[3] = (uint32_t)flags;
  arguments[4] = (uint32_t)-1;
  arguments[5] = 0;
  if (old_call(kMmap, (long)arguments, 0, 0, 0, 0) != (int)(long)at->begin) exit(3);
  write_rubbish(at);
}

static void change(const char* how, const struct Mapping* at) {
  const int all = PROT_READ | PROT_WRITE | PROT_EXEC;
  if (strcmp(how, "writes") == 0) {
    if (mprotect(at->begin, at->bytes, all) == 0) write_same(at);
  } else if (strcmp(how, "spoils") == 0) {
    if (mprotect(at->begin, at->bytes, all) == 0) write_rubbish(at);
  } else if (strcmp(how, "data") == 0) {
    if (mprotect(at->begin, at->bytes, PROT_READ | PROT_WRITE) == 0) write_rubbish(at);
  } else if (strcmp(how, "hides") == 0) {
    if (mprotect(at->begin, at->bytes, PROT_NONE) == 0 || errno != ENOMEM) exit(3);
  } else if (strcmp(how, "unmaps") == 0) {
    if (munmap(at->begin, at->bytes) != 0) exit(3);
  } else if (strcmp(how, "replaces") == 0) {
    if (mmap(at->begin, at->bytes, PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != at->begin) {
      exit(3);
    }
    at->begin[at->bytes - 1] = 1;
  } else if (strcmp(how, "moves") == 0) {
    void* to = mmap(NULL, at->bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    void* moved = mremap(at->begin, at->bytes, at->bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to);
    if (moved != MAP_FAILED || errno != EFAULT) exit(3);
  } else if (strcmp(how, "discards") == 0) {
    if (madvise(at->begin, at->bytes, MADV_REMOVE) == 0 || errno != ENOMEM) exit(3);
    if (madvise(at->begin, at->bytes, MADV_DOFORK) == 0 || errno != ENOMEM) exit(3);
  } else if (strcmp(how, "old") == 0) {
    change_by_old_calls(at);
  } else if (strncmp(how, "attaches", strlen("attaches")) == 0) {
    attach(how, at);
  } else if (strcmp(how, "maps_old") == 0) {
    map_by_old_call(at);
  } else if (strcmp(how, "file") == 0) {
    write_file(at);
  }
}

/* Unmaps everything between two pages of its own, the first mapping of a memfd included. */
static int unmap_around(void) {
  char* first = mappings[0].begin - kPage;
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE;
  char* page = mmap(first, kPage, PROT_READ | PROT_WRITE, flags, -1, 0);
  if (page != first) return 0; /* there is something else */
  *page = 1;
  if (mprotect(page, 2 * kPage, PROT_READ) == 0 || errno != ENOMEM) return 3;
  if (munmap(page, 2 * kPage) != 0) return 3;
  unsigned char resident;
  return mincore(page, kPage, &resident) != 0 && errno == ENOMEM ? 0 : 3;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  int expected = work();
  pthread_t worker;
  if (pthread_create(&worker, NULL, work_on, &expected) != 0) return 2;
  read_mappings();
  if (count != 0 && strcmp(argv[1], "around") == 0) {
    const int wrong = unmap_around();
    if (wrong != 0) return wrong;
  }
  for (int i = 0; i < count; ++i) change(argv[1], &mappings[i]);
  const int now = work();
  ends = 1;
  pthread_join(worker, NULL);
  return now == expected ? 0 : 1;
}
