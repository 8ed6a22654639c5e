// SPDX-License-Identifier: Apache-2.0
// Maps code of a file in all ways and executes it, at once or late.
// Usage: maps_code [COUNT | threads]. COUNT is the number of places that are mapped and executed.
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kPage = 4096, kPages = 8, kCode = PROT_READ | PROT_EXEC };

typedef int (*Function)(void);

static int file;
static sigjmp_buf before;

static void check(int found, int wanted, const char* what) {
  if (found == wanted) return;
  fprintf(stderr, "%s: %d instead of %d\n", what, found, wanted);
  exit(1);
}

static void write_code(unsigned char* at, int result) {
  at[0] = 0xb8;  // mov eax, result
  memcpy(at + 1, &result, sizeof result);
  at[5] = 0xc3;  // ret
}

// Page i of the file returns i + 1.
static void make_file(void) {
  file = memfd_create("code", MFD_CLOEXEC);
  for (int i = 0; i < kPages; ++i) {
    unsigned char page[kPage] = {0};
    write_code(page, i + 1);
    if (pwrite(file, page, kPage, (off_t)i * kPage) != kPage) exit(2);
  }
}

static void* map(void* at, int page, int protection, int flags) {
  void* got = mmap(at, kPage, protection, flags, file, (off_t)page * kPage);
  if (got == MAP_FAILED) exit(3);
  return got;
}

static int call(void* at) {
  Function function;
  memcpy(&function, &at, sizeof function);
  return function();
}

static void on_fault(int signal) {
  (void)signal;
  siglongjmp(before, 1);
}

static void map_it(int signal, siginfo_t* info, void* context) {
  (void)signal;
  (void)context;
  (void)map(info->si_addr, 3, kCode, MAP_PRIVATE | MAP_FIXED_NOREPLACE);
}

static int call_faults(void* at) {
  if (sigsetjmp(before, 1) != 0) return 1;
  (void)call(at);
  return 0;
}

static int child_calls(void* at, pid_t (*forks)(void)) {
  const pid_t child = forks();
  if (child == 0) _exit(call(at));
  int status = 0;
  if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) exit(4);
  return WEXITSTATUS(status);
}

// As dynamic linkers do.
static void map_into_reserved(void) {
  char* all = mmap(NULL, (size_t)kPages * kPage, PROT_READ, MAP_PRIVATE, file, 0);
  char* at = all + kPage;
  (void)map(at, 1, kCode, MAP_PRIVATE | MAP_FIXED);
  check(call(at), 2, "reserved");
  (void)map(at, 2, kCode, MAP_PRIVATE | MAP_FIXED);
  check(call(at), 3, "replaced");
  munmap(at, kPage);
  (void)map(at, 3, kCode, MAP_PRIVATE | MAP_FIXED_NOREPLACE);
  check(call(at), 4, "mapped again");
}

static void change_before_it_runs(void) {
  unsigned char* at = map(NULL, 0, kCode, MAP_PRIVATE);
  mprotect(at, kPage, PROT_READ | PROT_WRITE);
  write_code(at, 77);
  mprotect(at, kPage, kCode);
  check(call(at), 77, "patched");
  unsigned char* shared = map(NULL, 4, kCode, MAP_SHARED);
  check(call(shared), 5, "shared");
  unsigned char code[6];
  write_code(code, 78);
  if (pwrite(file, code, sizeof code, 4L * kPage) != (ssize_t)sizeof code) exit(5);
  check(call(shared), 78, "written through the file");
  char* place = mmap(NULL, kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  void* moved = map(NULL, 5, kCode, MAP_PRIVATE);
  check(mremap(moved, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, place) == place, 1, "moved");
  check(call(place), 6, "called where it was moved to");
}

static void unmap_before_it_runs(void) {
  struct sigaction action = {.sa_handler = on_fault};
  sigaction(SIGSEGV, &action, NULL);
  char* at = map(NULL, 6, kCode, MAP_PRIVATE);
  munmap(at, kPage);
  check(call_faults(at), 1, "unmapped");
  (void)map(at, 6, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE);
  check(call_faults(at), 1, "not executable");
  (void)map(at, 6, kCode, MAP_PRIVATE | MAP_FIXED);
  check(call(at), 7, "executable at last");
}

// As loaders that map what is executed.
static void map_when_it_runs(void) {
  struct sigaction action = {.sa_sigaction = map_it, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &action, NULL);
  for (int i = 0; i < kPages; ++i) {
    char* at = map(NULL, i, PROT_NONE, MAP_PRIVATE);
    munmap(at, kPage);
    check(call(at), 4, "mapped by a handler");
  }
}

static void* call_it(void* at) {
  return (void*)(intptr_t)call(at);
}

static void map_for_threads(void) {
  for (int i = 0; i < kPages; ++i) {
    void* at = map(NULL, i, kCode, MAP_PRIVATE);
    pthread_t thread;
    void* result = NULL;
    if (pthread_create(&thread, NULL, call_it, at) != 0) exit(6);
    // Where the other thread may execute it at the same time.
    check(call(at), i + 1, "beside another thread");
    pthread_join(thread, &result);
    check((int)(intptr_t)result, i + 1, "in another thread");
    (void)map(at, (i + 1) % kPages, kCode, MAP_PRIVATE | MAP_FIXED);
    check(call(at), (i + 1) % kPages + 1, "replaced after both");
  }
}

int main(int argc, char** argv) {
  make_file();
  const int count = argc > 1 ? atoi(argv[1]) : 0;
  for (int i = 0; i < count; ++i) {
    check(call(map(NULL, i % kPages, kCode, MAP_PRIVATE)), i % kPages + 1, "one of many");
  }
  if (count != 0) return 0;
  if (argc > 1) {
    map_for_threads();
    return 0;
  }
  map_into_reserved();
  void* of_child = map(NULL, 7, kCode, MAP_PRIVATE);
  check(child_calls(of_child, fork), 8, "in a child");
  check(child_calls(of_child, vfork), 8, "in a vfork's child");
  check(call(of_child), 8, "in the parent");
  change_before_it_runs();
  unmap_before_it_runs();
  map_when_it_runs();
  return 0;
}
