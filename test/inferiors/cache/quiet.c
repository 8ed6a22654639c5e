// Code in writable memory that runs for long without a write and is then written. The first
// argument says how; a second one maps the memory from a file.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

typedef int (*function)(void);

enum { kPages = 2, kPage = 4096, kBytes = kPages * kPage, kOften = 700000 };
static const int kAll = PROT_READ | PROT_WRITE | PROT_EXEC;

static uint8_t* code;
static int wrong;

static void expect(int ok, int line) {
  if (ok || wrong) return;
  wrong = line;
  fprintf(stderr, "line %d\n", line);
}

static int call(const uint8_t* at) {
  return ((function)(uintptr_t)at)();
}

// mov eax, VALUE; ret
static void write_constant(uint8_t* at, int value) {
  const uint8_t bytes[] = {0xb8, 0, 0, 0, 0, 0xc3};
  memcpy(at, bytes, sizeof bytes);
  memcpy(at + 1, &value, sizeof value);
}

static void warm(const uint8_t* at, int value) {
  for (int i = 0; i < kOften; ++i) expect(call(at) == value, __LINE__);
  raise(SIGUSR1);  // a tracer may look now
}

static void number(uint8_t* at, int value) {
  *(volatile int*)(void*)(at + 1) = value;
  expect(call(at) == value, __LINE__);
}

static void store(void) {
  for (int round = 0; round < 2; ++round) {
    for (int i = 0; i < 40; ++i) number(code, i);
    warm(code, 39);
  }
}

static void locked(void) {
  int old = 1;
  atomic_compare_exchange_strong((_Atomic int*)(void*)(code + 1), &old, 7);
  expect(call(code) == 7, __LINE__);
  atomic_fetch_add((_Atomic int*)(void*)(code + 1), 3);
  expect(call(code) == 10, __LINE__);
}

static void string(void) {
  uint8_t image[64];
  write_constant(image, 5);
  for (int i = 0; i < 3; ++i) {
    image[1] = (uint8_t)(5 + i);
    void* to = code;
    const void* from = image;
    size_t count = sizeof image;
    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    expect(call(code) == 5 + i, __LINE__);
  }
}

// An instruction that spans two pages.
static void border(void) {
  uint8_t* at = code + kPage - 3;
  write_constant(at, 4);
  write_constant(code + kPage + 64, 9);
  warm(code + kPage + 64, 9);
  warm(at, 4);
  for (int i = 0; i < 10; ++i) {
    number(at, 0x01010101 * i);  // one store to both pages
    at[4] = 0x7f;                // its last byte alone
    expect(call(at) == (0x00010101 * i | 0x7f << 24), __LINE__);
  }
}

static void bulk(void) {
  uint8_t image[kBytes];
  for (int i = 0; i < kBytes / 16; ++i) write_constant(image + 16 * i, i);
  for (int round = 0; round < 3; ++round) {
    memcpy(code, image, sizeof image);
    for (int i = 0; i < kBytes / 16; ++i) expect(call(code + 16 * i) == i, __LINE__);
    memset(code, 0xc3, kBytes);
  }
}

static void by_kernel(void) {
  int ends[2];
  if (pipe(ends) != 0) exit(2);
  uint8_t image[6];
  for (int i = 0; i < 5; ++i) {
    write_constant(image, 100 + i);
    if (write(ends[1], image, sizeof image) != sizeof image) exit(2);
    if (i % 3 == 0) {
      expect(read(ends[0], code, sizeof image) == sizeof image, __LINE__);
    } else if (i % 3 == 2) {
      expect(syscall(SYS_read, ends[0], code, sizeof image) == sizeof image, __LINE__);
    } else {
      const struct iovec parts[] = {{code, 2}, {code + 2, 4}};
      expect(readv(ends[0], parts, 2) == sizeof image, __LINE__);
    }
    expect(call(code) == 100 + i, __LINE__);
    warm(code, 100 + i);
  }
  expect(getrandom(code + 64, 16, 0) == 16, __LINE__);
  // A failing call must still fail.
  if (write(ends[1], image, 1) != 1) exit(2);
  void* volatile nowhere = (void*)8;
  errno = 0;
  expect(read(ends[0], nowhere, 1) == -1 && errno == EFAULT, __LINE__);
}

static void by_child(void) {
  const pid_t child = fork();
  if (child == 0) {
    number(code, 2);
    _exit(wrong != 0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  expect(status == 0, __LINE__);
  expect(call(code) == 1, __LINE__);
  number(code, 3);
  warm(code, 3);
  char* arguments[] = {"/bin/true", NULL};
  pid_t other = 0;
  if (posix_spawn(&other, "/bin/true", NULL, NULL, arguments, NULL) != 0) exit(2);
  number(code, 4);
  waitpid(other, &status, 0);
  expect(status == 0, __LINE__);
  expect(call(code) == 4, __LINE__);
}

static atomic_int published, done, turns;

static void* run_published(void* unused) {
  (void)unused;
  while (!atomic_load(&done)) {
    const int least = atomic_load(&published);
    expect(call(code + 3) >= least, __LINE__);
    atomic_fetch_add_explicit(&turns, 1, memory_order_relaxed);
  }
  return NULL;
}

// One thread changes a number in code that others run all the time.
static void by_thread(void) {
  write_constant(code + 3, 0);  // the number is aligned
  pthread_t workers[2];
  for (int i = 0; i < 2; ++i) pthread_create(&workers[i], NULL, run_published, NULL);
  for (int i = 1; i <= 5; ++i) {
    atomic_store(&turns, 0);
    while (atomic_load(&turns) < kOften) usleep(100);
    raise(SIGUSR1);
    for (int j = 0; j < 5; ++j) {
      atomic_store((_Atomic int*)(void*)(code + 4), 10 * i + j);
      atomic_store(&published, 10 * i + j);
    }
  }
  atomic_store(&done, 1);
  for (int i = 0; i < 2; ++i) pthread_join(workers[i], NULL);
}

static atomic_int handled;
static void handle(int signal) {
  (void)signal;
  ++handled;
}

static sighandler_t action(void) {
  struct sigaction now;
  sigaction(SIGSEGV, NULL, &now);
  return now.sa_handler;
}

static int blocked(void) {
  sigset_t now;
  sigprocmask(SIG_BLOCK, NULL, &now);
  return sigismember(&now, SIGSEGV);
}

static int pending(void) {
  sigset_t now;
  sigpending(&now);
  return sigismember(&now, SIGSEGV);
}

static void with_signals(void) {
  sigset_t segv;
  sigemptyset(&segv);
  sigaddset(&segv, SIGSEGV);
  signal(SIGSEGV, handle);
  number(code, 2);
  warm(code, 2);
  sigprocmask(SIG_BLOCK, &segv, NULL);
  number(code, 3);
  warm(code, 3);
  number(code, 4);
  expect(handled == 0 && action() == handle && blocked(), __LINE__);
  warm(code, 4);
  raise(SIGSEGV);
  number(code, 5);
  expect(handled == 0 && action() == handle && blocked() && pending(), __LINE__);
  sigprocmask(SIG_UNBLOCK, &segv, NULL);
  expect(handled == 1 && !pending(), __LINE__);
  signal(SIGSEGV, SIG_IGN);
  warm(code, 5);
  number(code, 6);
  expect(action() == SIG_IGN && !blocked(), __LINE__);
}

static void with_mappings(void) {
  mprotect(code, kPage, PROT_READ | PROT_WRITE);
  code[1] = 2;
  mprotect(code, kPage, PROT_READ | PROT_EXEC);
  expect(call(code) == 2, __LINE__);
  mprotect(code, kPage, kAll);
  warm(code, 2);
  number(code, 3);
  warm(code, 3);
  madvise(code, kPage, MADV_DONTNEED);
  expect(code[0] == 0, __LINE__);
  write_constant(code, 4);
  warm(code, 4);
  munmap(code, kPage);
  if (mmap(code, kPage, kAll, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != code) exit(2);
  expect(code[0] == 0, __LINE__);
  write_constant(code, 5);
  warm(code, 5);
  code = mremap(code, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, code + 16 * kPage);
  number(code, 6);
}

static sigjmp_buf before;
static void on_no_page(int signal) {
  siglongjmp(before, signal);
}

static int is_gone(void) {
  if (sigsetjmp(before, 1) != 0) return 1;
  call(code);
  return 0;
}

enum { kStays, kByDescriptor, kByPath, kAsItIsOpened, kAsItIsOpenedToRead, kHows };

// Opens and writes the file. A private mapping keeps the pages it has written until a truncation.
static void open_again(const char* path, int how) {
  if (how == kByPath) truncate(path, 0);
  const int flags = how == kAsItIsOpened         ? O_RDWR | O_TRUNC
                    : how == kAsItIsOpenedToRead ? O_RDONLY | O_TRUNC
                                                 : O_RDWR;
  int file = open(path, flags);
  if (how == kByDescriptor && ftruncate(file, 0) != 0) exit(2);
  if (how != kStays) expect(is_gone(), __LINE__);
  if (how == kAsItIsOpenedToRead) {
    close(file);
    file = open(path, O_RDWR);
  }
  const int old = how == kStays ? call(code) : -1;
  for (int i = 0; i < 3; ++i) {
    uint8_t image[kPage] = {0};
    write_constant(image, 1000 * how + i);
    if (pwrite(file, image, sizeof image, 0) != sizeof image) exit(2);
    expect(call(code) == (how == kStays ? old : 1000 * how + i), __LINE__);
  }
  close(file);
}

static void reopened(void) {
  signal(SIGBUS, on_no_page);
  char path[] = "/tmp/quiet_XXXXXX";
  const int file = mkstemp(path);
  if (file < 0 || ftruncate(file, kPage) != 0) exit(2);
  if (mmap(code, kPage, kAll, MAP_PRIVATE | MAP_FIXED, file, 0) != code) exit(2);
  close(file);
  for (int how = 0; how < kHows; ++how) {
    write_constant(code, how);
    warm(code, how);
    open_again(path, how);
  }
  unlink(path);
}

static void no_signal(int signal) {
  (void)signal;
}

// Maps the file from an offset above 0.
static void map_file(void) {
  const int file = memfd_create("code", 0);
  if (file < 0 || ftruncate(file, 40 * kPage) != 0) exit(2);
  if (mmap(code, kBytes, kAll, MAP_PRIVATE | MAP_FIXED, file, 3 * kPage) != code) exit(2);
  close(file);
}

int main(int argc, char** argv) {
  const char* kind = argc > 1 ? argv[1] : "store";
  signal(SIGUSR1, no_signal);
  code = mmap(NULL, 32 * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(code, kBytes, kAll);
  if (argc > 2) map_file();
  write_constant(code, 1);
  warm(code, 1);
  if (strcmp(kind, "store") == 0) store();
  if (strcmp(kind, "locked") == 0) locked();
  if (strcmp(kind, "string") == 0) string();
  if (strcmp(kind, "border") == 0) border();
  if (strcmp(kind, "bulk") == 0) bulk();
  if (strcmp(kind, "kernel") == 0) by_kernel();
  if (strcmp(kind, "child") == 0) by_child();
  if (strcmp(kind, "thread") == 0) by_thread();
  if (strcmp(kind, "signals") == 0) with_signals();
  if (strcmp(kind, "mappings") == 0) with_mappings();
  if (strcmp(kind, "reopened") == 0) reopened();
  printf("%s %s\n", kind, wrong ? "wrong" : "right");
  return wrong != 0;
}

// SPDX-License-Identifier: Apache-2.0
