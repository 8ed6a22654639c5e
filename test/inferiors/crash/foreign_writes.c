// Memory that changes between mark() and the crash. Four ways have no store to its address:
// "clone", another process that shares the memory; "fork", one that writes it by process_vm_writev;
// "procmem", a write to /proc/self/mem; "made", another mapping of a library file being written.
// "constant" writes to read-only memory through that file, before mark() and after it.
// "procmem32" is as "procmem", but the file is opened by a 32-bit call.
// "code": a store to memory that is then made executable and looks like a library.
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kStackWords = 8192, kPageBytes = 4096 };

static volatile long written = 1;
static const volatile char constant[] = {77};
static volatile char *page, *made, *alias;
static int go[2], done[2], memory;
static long stack[kStackWords];

void mark(void) {
  __asm__ volatile("" ::: "memory");
}

static int child(void* unused) {
  char byte;
  (void)unused;
  if (read(go[0], &byte, 1) != 1) return 1;
  written = 77;
  return write(done[1], "", 1) != 1;
}

static int writer(void) {
  char byte;
  long value = 77;
  const struct iovec here = {&value, sizeof value};
  const struct iovec there = {(void*)&written, sizeof value};
  if (read(go[0], &byte, 1) != 1) return 1;
  if (process_vm_writev(getppid(), &here, 1, &there, 1, 0) != sizeof value) return 1;
  return write(done[1], "", 1) != 1;
}

/// Opens a file for reading and writing as 32-bit programs do; fails where the kernel has no such
/// calls. The name is in the low 4 GiB.
static int open_by_32_bit_call(const char* name) {
  long result = 5;  // open
  __asm__ volatile("int $0x80"
                   : "+a"(result)
                   : "b"(name), "c"(O_RDWR), "d"(0)
                   : "memory", "r8", "r9", "r10", "r11");
  return (int)result;
}

int main(int argc, char** argv) {
  const char* how = argc > 1 ? argv[1] : "";
  char byte;
  long value = 77;
  if (pipe(go) != 0 || pipe(done) != 0) return 1;
  if (strcmp(how, "procmem32") == 0) {
    char* const low = mmap(NULL, kPageBytes, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_32BIT, -1, 0);
    memory = open_by_32_bit_call(strcpy(low, "/proc/self/mem"));
    how = "procmem";
  } else {
    memory = open("/proc/self/mem",
                  strcmp(how, "procmem") == 0 || strcmp(how, "constant") == 0 ? O_RDWR : O_RDONLY);
  }
  page = mmap(NULL, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy((void*)page, "\177ELF\1", 5);
  if (strcmp(how, "clone") == 0 &&
      clone(child, stack + kStackWords, CLONE_VM | CLONE_FILES | SIGCHLD, NULL) < 0) {
    return 1;
  }
  if (strcmp(how, "fork") == 0 && fork() == 0) _exit(writer());
  const int file = memfd_create("library", 0);
  if (ftruncate(file, kPageBytes) != 0 || pwrite(file, "\177ELF\1", 5, 0) != 5) return 1;
  made = mmap(NULL, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  alias = mmap(NULL, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (alias[4] != made[4]) return 1;
  if (strcmp(how, "constant") == 0 && pwrite(memory, "\1", 1, (off_t)constant) != 1) return 1;
  mark();
  if (strcmp(how, "clone") == 0 || strcmp(how, "fork") == 0) {
    if (write(go[1], "", 1) != 1 || read(done[0], &byte, 1) != 1) return 1;
  } else if (strcmp(how, "procmem") == 0) {
    if (lseek(memory, (off_t)&written, SEEK_SET) < 0) return 1;
    if (write(memory, &value, sizeof value) != sizeof value) return 1;
  } else if (strcmp(how, "constant") == 0) {
    if (pwrite(memory, "\115", 1, (off_t)constant) != 1) return 1;
  } else if (strcmp(how, "made") == 0) {
    made[4] = 77;
  } else {
    page[4] = 77;
    if (mprotect((void*)page, kPageBytes, PROT_READ | PROT_EXEC) != 0) return 1;
  }
  *(volatile int*)NULL = 1;
  return 0;
}

// SPDX-License-Identifier: Apache-2.0
