/* Limits its address space and checks the limit. "set": both limits; "soft": the soft one only;
 * "thread", "fork", "exec", "vfork": the limit is shared or inherited; "refused": invalid values;
 * "wait": sends itself a signal, and waits for another; "grow": takes all memory that its limits
 * leave, by mmap(), brk() or the stack, and prints how much that is; "lock": locks all of its
 * memory; "pending": may have no queued signals (RLIMIT_SIGPENDING 0). */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kMegabyte = 1 << 20, kLimit = 300 * kMegabyte };

static int maps(size_t bytes) {
  void* at =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED) return 0;
  munmap(at, bytes);
  return 1;
}

static int limit_is(rlim_t soft, rlim_t hard) {
  struct rlimit asked[4];
  memset(asked, 0x55, sizeof asked);
  if (getrlimit(RLIMIT_AS, &asked[0]) != 0) return 0;
  if (syscall(SYS_getrlimit, RLIMIT_AS, &asked[1]) != 0) return 0;
  if (prlimit(getpid(), RLIMIT_AS, NULL, &asked[2]) != 0) return 0;
  /* A call number that is not known before it runs. */
  static volatile long number = SYS_prlimit64;
  if (syscall(number, 0, RLIMIT_AS, NULL, &asked[3]) != 0) return 0;
  for (int i = 0; i < 4; ++i) {
    if (asked[i].rlim_cur != soft || asked[i].rlim_max != hard) return 0;
  }
  return 1;
}

static int is_limited(void) {
  return limit_is(kLimit, kLimit) && maps(kLimit - 20 * kMegabyte) && !maps(kLimit);
}

static int set(rlim_t soft, rlim_t hard) {
  const struct rlimit limit = {soft, hard};
  return setrlimit(RLIMIT_AS, &limit) == 0;
}

static void* elsewhere(void* unused) {
  (void)unused;
  return is_limited() ? NULL : "no";
}

static int in_thread(void) {
  pthread_t id;
  void* result = "no";
  return pthread_create(&id, NULL, elsewhere, NULL) == 0 && pthread_join(id, &result) == 0 &&
         result == NULL;
}

static int succeeds(pid_t child) {
  int status = -1;
  return waitpid(child, &status, 0) == child && status == 0;
}

/* One call sets the new limit and returns the old one. */
static int exchanges(rlim_t soft) {
  struct rlimit old = {1, 1};
  const struct rlimit limit = {soft, kLimit};
  return prlimit(0, RLIMIT_AS, &limit, &old) == 0 && old.rlim_cur == kLimit &&
         old.rlim_max == kLimit && limit_is(soft, kLimit) && set(kLimit, kLimit);
}

static int is_refused(void) {
  const int wrong = setrlimit(RLIMIT_AS, (const struct rlimit*)8) != -1 || errno != EFAULT;
  const int turned = set(kLimit, kLimit / 2) || errno != EINVAL;
  /* Only privileged processes may raise hard limits. */
  const int raised =
      setresuid(65534, 65534, 65534) == 0 && (set(kLimit, kLimit + 1) || errno != EPERM);
  return !wrong && !turned && !raised;
}

static void run_again(const char* self, const char* how) {
  execl(self, self, how, NULL);
  _exit(9);
}

static int in_vfork(const char* self) {
  const pid_t child = vfork();
  if (child == 0) {
    if (!set(kLimit, kLimit)) _exit(8);
    run_again(self, "inherited");
  }
  return succeeds(child) && limit_is(RLIM_INFINITY, RLIM_INFINITY) && maps(2UL * kLimit);
}

static __attribute__((noinline)) int go_down(int levels) {
  volatile char frame[65536];
  frame[0] = 1;
  __asm__ volatile("" : : "r"(frame) : "memory");
  return levels == 0 ? frame[0] : go_down(levels - 1) + frame[0];
}

static int grow(void) {
  int mapped = 0;
  while (mmap(NULL, kMegabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
              -1, 0) != MAP_FAILED) {
    ++mapped;
  }
  printf("%d\n", mapped);
  fflush(stdout);
  return 0;
}

/* Leaves 3 MiB of the limit to the stack, and uses 5 MiB. The kernel's count includes the
 * recorder's memory, so the recorder has to raise the limit. */
static int grow_down(void) {
  long pages = 0;
  struct rlimit limit;
  FILE* file = fopen("/proc/self/statm", "r");
  if (file == NULL || fscanf(file, "%ld", &pages) != 1 || getrlimit(RLIMIT_AS, &limit) != 0)
    return 2;
  fclose(file);
  const size_t left = limit.rlim_cur - (size_t)pages * 4096 - 3 * kMegabyte;
  if (mmap(NULL, left, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED) return 3;
  return go_down(5 * kMegabyte / 65536) > 0 ? 0 : 1;
}

static int grow_by_brk(void) {
  char* const before = sbrk(0);
  size_t step = 256 * kMegabyte;
  while (step >= kMegabyte) {
    if (sbrk((intptr_t)step) == (void*)-1) step /= 2;
  }
  printf("%ld\n", (long)(((char*)sbrk(0) - before) / kMegabyte));
  return 0;
}

static void wait_for_end(void) {
  raise(SIGWINCH);
  for (;;) pause();
}

/* Returns the locked memory in KiB. */
static long locked(void) {
  char line[256];
  long found = -1;
  FILE* status = fopen("/proc/self/status", "r");
  while (fgets(line, sizeof line, status) != NULL) {
    if (strncmp(line, "VmLck:", 6) == 0) found = strtol(line + 6, NULL, 10);
  }
  fclose(status);
  return found;
}

/* Locks memory as a user with a small limit. */
static int locks(void) {
  if (locked() != 0) return 0; /* reading it also maps what it needs */
  const struct rlimit limit = {8 * kMegabyte, 8 * kMegabyte};
  if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 || setresuid(65534, 65534, 65534) != 0) return 0;
  if (mlockall(MCL_CURRENT) != 0) return 0;
  const long now = locked();
  if (now < 1024 || now > 8192) return 0;
  if (munlockall() != 0 || locked() != 0) return 0;
  if (mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return 0;
  void* more = mmap(NULL, kMegabyte, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (more == MAP_FAILED || locked() != now + 1024) return 0;
  if (munlockall() != 0 || mlockall(0) != -1 || errno != EINVAL) return 0;
  const struct rlimit less = {kMegabyte, kMegabyte};
  return setrlimit(RLIMIT_MEMLOCK, &less) == 0 && mlockall(MCL_CURRENT) == -1 && errno == ENOMEM;
}

static int compare(const void* a, const void* b) {
  return strcmp(*(char* const*)a, *(char* const*)b);
}

/* Runs code that has not run before, with no room for queued signals. */
static int is_pending(void) {
  const struct rlimit limit = {0, 0};
  if (setrlimit(RLIMIT_SIGPENDING, &limit) != 0) return 0;
  const char* words[] = {"c", "a", "b"};
  qsort(words, 3, sizeof words[0], compare);
  return strtod("1.5", NULL) == 1.5 && *words[0] == 'a';
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  if (strcmp(how, "grow") == 0) return grow();
  if (strcmp(how, "grow down") == 0) return grow_down();
  if (strcmp(how, "grow by brk") == 0) return grow_by_brk();
  if (strcmp(how, "inherited") == 0) return is_limited() ? 0 : 1;
  if (strcmp(how, "lock") == 0) return locks() ? 0 : 1;
  if (strcmp(how, "pending") == 0) return is_pending() ? 0 : 1;
  if (strcmp(how, "vfork") == 0) return in_vfork(argv[0]) ? 0 : 2;
  if (strcmp(how, "soft") == 0) {
    if (!set(kLimit, RLIM_INFINITY) || !limit_is(kLimit, RLIM_INFINITY)) return 3;
    if (!maps(kLimit - 20 * kMegabyte) || maps(kLimit)) return 4;
    if (!set(2UL * kLimit, RLIM_INFINITY) || !maps(kLimit + kMegabyte)) return 5;
    return set(RLIM_INFINITY, RLIM_INFINITY) && maps(4UL << 30) ? 0 : 6;
  }
  if (!set(kLimit, kLimit)) return 7;
  if (strcmp(how, "set") == 0) return is_limited() && exchanges(kLimit / 2) ? 0 : 1;
  if (strcmp(how, "thread") == 0) return in_thread() ? 0 : 1;
  if (strcmp(how, "refused") == 0) return is_refused() && is_limited() ? 0 : 1;
  if (strcmp(how, "exec") == 0) run_again(argv[0], "inherited");
  if (strcmp(how, "wait") == 0) wait_for_end();
  const pid_t child = fork();
  if (child == 0) {
    if (!is_limited()) _exit(1);
    run_again(argv[0], "inherited");
  }
  return succeeds(child) ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
