// SPDX-License-Identifier: Apache-2.0
// Processes that share memory (clone() with CLONE_VM): one of them changes code that the others
// have executed. The first argument says how they are related, the second one how often the code
// runs between two changes, the third one, if there is one, which way to change it is tried alone.
// Prints each case in which old code ran; exits with 0 if none did.

#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
  kPage = 4096,
  kReader = 0,
  kSpinner = 64,
  kChanged = kPage,
  kChangedBytes = 6,
  kMost = 3,
  kStackBytes = 65536,
  kFault = -1,
  kRounds = 2
};

// Commands to a process that runs the code.
enum { kWait, kRun, kMap, kEnd };

// How the processes are related. Process 0 is the first one; each of the others is the child of the
// one before it.
struct relation {
  const char* name;
  int flags;    // of clone()
  int count;    // number of processes
  int changes;  // the one that changes the code; the others run it
  int leaves;   // one that ends, or executes another program, as soon as it has a child
  int executes;
};

static const struct relation relations[] = {
    {"child", CLONE_VM | SIGCHLD, 2, 1, -1, 0},
    {"parent", CLONE_VM | SIGCHLD, 2, 0, -1, 0},
    {"files", CLONE_VM | CLONE_FILES | CLONE_FS | SIGCHLD, 2, 1, -1, 0},
    {"signals", CLONE_VM | CLONE_SIGHAND | SIGCHLD, 2, 0, -1, 0},
    {"silent", CLONE_VM, 2, 1, -1, 0},
    {"first", CLONE_VM | SIGCHLD, 3, 0, -1, 0},
    {"second", CLONE_VM | SIGCHLD, 3, 1, -1, 0},
    {"third", CLONE_VM | SIGCHLD, 3, 2, -1, 0},
    {"orphan", CLONE_VM | SIGCHLD, 3, 2, 1, 0},
    {"orphaned", CLONE_VM | SIGCHLD, 3, 0, 1, 0},
    {"exec", CLONE_VM | SIGCHLD, 3, 2, 1, 1},
    {"vfork", CLONE_VM | CLONE_VFORK | SIGCHLD, 2, 1, -1, 0},
};

// All of these are in memory that the processes share.
static const struct relation* relation;
static const char* way;
static long calls;
static unsigned char* code;
static int to[kMost][2];
static int from[kMost][2];
static volatile int flags[kMost];
static volatile int seen[kMost];
static int spins;
static int value;
static int stale;
static char stacks[kMost][kStackBytes] __attribute__((aligned(16)));
static sigjmp_buf fault_places[kMost];
static volatile pid_t ids[kMost];

// mov eax, VALUE / ret
static void make_changed(unsigned char* at, int number) {
  at[0] = 0xb8;
  memcpy(at + 1, &number, sizeof number);
  at[5] = 0xc3;
}

// A page of code that waits and then goes to the page that changes, and that page.
static void make_code(int protection) {
  // xor eax, eax / syscall / call kChanged / ret
  static const unsigned char reader[] = {0x31, 0xc0, 0x0f, 0x05, 0xe8, 0xf7, 0x0f, 0, 0, 0xc3};
  // l: cmp dword [rdi], 0 / je l / call kChanged / ret
  static const unsigned char spinner[] = {0x83, 0x3f, 0x00, 0x74, 0xfb, 0xe8,
                                          0xb6, 0x0f, 0x00, 0x00, 0xc3};
  code = mmap(NULL, 2 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memcpy(code + kReader, reader, sizeof reader);
  memcpy(code + kSpinner, spinner, sizeof spinner);
  make_changed(code + kChanged, value);
  mprotect(code, kPage, PROT_READ | PROT_EXEC);
  mprotect(code + kChanged, kPage, protection);
}

static void on_fault(int signal) {
  for (int i = 0; i < kMost; ++i) {
    if (ids[i] == getpid()) siglongjmp(fault_places[i], signal);
  }
}

// --- ways to change the code
// ----------------------------------------------------------------------

static int by_protection(unsigned char* at) {
  mprotect(at, kPage, PROT_READ | PROT_WRITE | PROT_EXEC);
  make_changed(at, value);
  return mprotect(at, kPage, PROT_READ | PROT_EXEC) == 0;
}

static int by_store(unsigned char* at) {
  make_changed(at, value);
  return 1;
}

static unsigned char* fresh_page(unsigned char* at, int flag) {
  unsigned char* page =
      mmap(at, kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flag, -1, 0);
  make_changed(page, value);
  mprotect(page, kPage, PROT_READ | PROT_EXEC);
  return page;
}

static int by_mapping(unsigned char* at) {
  return fresh_page(at, MAP_FIXED) == at;
}

static int by_unmapping(unsigned char* at) {
  return munmap(at, kPage) == 0 && fresh_page(at, MAP_FIXED_NOREPLACE) == at;
}

static int by_moving(unsigned char* at) {
  unsigned char* other = fresh_page(NULL, 0);
  return mremap(other, kPage, kPage, MREMAP_MAYMOVE | MREMAP_FIXED, at) == at;
}

static int make_file(void) {
  char path[] = "/tmp/code_sharers_XXXXXX";
  unsigned char bytes[kPage] = {0};
  make_changed(bytes, value);
  const int file = mkstemp(path);
  if (write(file, bytes, kPage) != kPage) return -1;
  close(file);
  const int again = open(path, O_RDONLY);
  unlink(path);
  return again;
}

static int by_file(unsigned char* at) {
  const int file = make_file();
  const int done =
      mmap(at, kPage, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, file, 0) == (void*)at;
  close(file);
  return done;
}

// The page of the file is there again where a copy of it was.
static int by_removing_a_copy(unsigned char* at) {
  if (!by_file(at) || mprotect(at, kPage, PROT_READ | PROT_WRITE) != 0) return 0;
  make_changed(at, -value);
  if (mprotect(at, kPage, PROT_READ | PROT_EXEC) != 0) return 0;
  ((int (*)(void))at)();
  return madvise(at, kPage, MADV_DONTNEED) == 0;
}

static int by_own_memory_file(unsigned char* at) {
  unsigned char bytes[kChangedBytes];
  make_changed(bytes, value);
  const int file = open("/proc/self/mem", O_RDWR);
  const int done = pwrite(file, bytes, sizeof bytes, (off_t)at) == sizeof bytes;
  close(file);
  return done;
}

static int by_writev(unsigned char* at) {
  unsigned char bytes[kChangedBytes];
  make_changed(bytes, value);
  const struct iovec local = {bytes, sizeof bytes};
  const struct iovec remote = {at, sizeof bytes};
  mprotect(at, kPage, PROT_READ | PROT_WRITE | PROT_EXEC);
  const int done = process_vm_writev(getpid(), &local, 1, &remote, 1, 0) == sizeof bytes;
  mprotect(at, kPage, PROT_READ | PROT_EXEC);
  return done;
}

// The kernel writes to the code for a call.
static int by_read(unsigned char* at) {
  int pipes[2];
  unsigned char bytes[kChangedBytes];
  make_changed(bytes, value);
  if (pipe(pipes) != 0 || write(pipes[1], bytes, sizeof bytes) != sizeof bytes) return 0;
  const int done = read(pipes[0], at, sizeof bytes) == sizeof bytes;
  close(pipes[0]);
  close(pipes[1]);
  return done;
}

// These two leave no code. One of the other processes has mapped it.
static int by_taking_away(unsigned char* at) {
  return munmap(at, kPage) == 0;
}

static int by_forbidding(unsigned char* at) {
  return mprotect(at, kPage, PROT_READ) == 0;
}

static const struct {
  const char* name;
  int protection;
  int (*change)(unsigned char* at);
  int takes_away;
} ways[] = {
    {"mprotect", PROT_READ | PROT_EXEC, by_protection, 0},
    {"store", PROT_READ | PROT_WRITE | PROT_EXEC, by_store, 0},
    {"read", PROT_READ | PROT_WRITE | PROT_EXEC, by_read, 0},
    {"mmap", PROT_READ | PROT_EXEC, by_mapping, 0},
    {"munmap and mmap", PROT_READ | PROT_EXEC, by_unmapping, 0},
    {"mremap", PROT_READ | PROT_EXEC, by_moving, 0},
    {"file", PROT_READ | PROT_EXEC, by_file, 0},
    {"madvise", PROT_READ | PROT_EXEC, by_removing_a_copy, 0},
    {"process_vm_writev", PROT_READ | PROT_EXEC, by_writev, 0},
    {"munmap", PROT_READ | PROT_EXEC, by_taking_away, 1},
    {"mprotect away", PROT_READ | PROT_EXEC, by_forbidding, 1},
    // The last one: from now on all writes are examined.
    {"/proc/self/mem", PROT_READ | PROT_EXEC, by_own_memory_file, 0},
};
static int (*change)(unsigned char* at);
static int takes_away;

// --- the processes
// --------------------------------------------------------------------------------

static int leaves_code(void) {
  return !takes_away || value % 2 != 0;
}

static void run_often(void) {
  for (long i = 0; i < calls; ++i) ((int (*)(void))(code + kChanged))();
}

// Waits, runs the code as soon as it may, and tells the result; until it is told to stop.
static void run_code(int self) {
  for (;;) {
    char byte = 0;
    if (sigsetjmp(fault_places[self], 1) == 0) {
      seen[self] = spins ? ((int (*)(volatile int*))(code + kSpinner))(&flags[self])
                         : ((int (*)(long, void*, long))(code + kReader))(to[self][0], &byte, 1);
      run_often();
    } else {
      seen[self] = kFault;
    }
    if (flags[self] == kEnd) return;
    if (flags[self] == kMap) fresh_page(code + kChanged, MAP_FIXED);
    flags[self] = kWait;
    if (write(from[self][1], "d", 1) != 1) return;
  }
}

static int runs(int self) {
  return self < relation->count && self != relation->changes && self != relation->leaves;
}

static void let(int i, int what) {
  flags[i] = what;
  if (!spins && write(to[i][1], "x", 1) != 1) _exit(97);
  char byte = 0;
  if (what != kEnd && read(from[i][0], &byte, 1) != 1) _exit(96);
}

static int first_to_run(void) {
  int i = 0;
  while (!runs(i)) ++i;
  return i;
}

static void complain(int i, int expected) {
  char text[160];
  const int length = snprintf(text, sizeof text, "%s, %s, %s: %d saw %d instead of %d\n",
                              relation->name, way, spins ? "spins" : "waits", i, seen[i], expected);
  ++stale;
  if (stale < 20 && write(1, text, (size_t)length) != length) _exit(95);
}

static void change_code(void) {
  for (int round = 0; round < kRounds; ++round) {
    ++value;
    if (takes_away && leaves_code()) {
      let(first_to_run(), kMap);
    } else if (!change(code + kChanged)) {
      _exit(94);
    }
    const int expected = leaves_code() ? value : kFault;
    for (int i = 0; i < relation->count; ++i) {
      if (!runs(i)) continue;
      let(i, kRun);
      if (seen[i] != expected) complain(i, expected);
    }
  }
}

static void stop_all(void) {
  if (takes_away) fresh_page(code + kChanged, MAP_FIXED);
  for (int i = 0; i < relation->count; ++i) {
    if (runs(i)) let(i, kEnd);
  }
}

static int be(void* number);

static void begin(long number) {
  if (clone(be, stacks[number] + kStackBytes, relation->flags, (void*)number) < 0) _exit(93);
}

static void work(int self) {
  ids[self] = getpid();
  if (self == relation->changes) {
    // All others have run the old code.
    for (int i = 0; i < relation->count; ++i) {
      if (runs(i)) let(i, kRun);
    }
    change_code();
    stop_all();
  } else if (self != relation->leaves) {
    run_code(self);
  }
}

static int be(void* number) {
  const int self = (int)(long)number;
  if (self + 1 < relation->count) begin(self + 1);
  if (self == relation->leaves && relation->executes) execl("/bin/true", "true", NULL);
  if (self == relation->leaves) _exit(0);
  work(self);
  if (self + 1 < relation->count) waitpid(-1, NULL, __WALL);
  _exit(0);
}

static void relate(void) {
  begin(1);
  work(0);
  // The next ones get the stacks of these.
  while (waitpid(-1, NULL, __WALL) > 0) {
  }
}

static int change_once(void* unused) {
  (void)unused;
  if (!change(code + kChanged)) _exit(94);
  _exit(0);
}

// The parent waits while the child changes the code.
static void change_by_vforks(void) {
  ids[0] = getpid();
  for (int round = 0; round < kRounds; ++round) {
    run_often();
    ++value;
    if (clone(change_once, stacks[1] + kStackBytes, relation->flags, NULL) < 0) _exit(93);
    int status = -1;
    if (waitpid(-1, &status, __WALL) < 0 || status != 0) _exit(91);
    const int expected = takes_away ? kFault : value;
    seen[0] = kFault;
    if (sigsetjmp(fault_places[0], 1) == 0) seen[0] = ((int (*)(void))(code + kChanged))();
    if (seen[0] != expected) complain(0, expected);
    if (seen[0] == kFault) fresh_page(code + kChanged, MAP_FIXED);
  }
}

static void try_all(const char* only) {
  for (unsigned i = 0; i < sizeof ways / sizeof *ways; ++i) {
    way = ways[i].name;
    if (only != NULL && strcmp(only, way) != 0) continue;
    change = ways[i].change;
    takes_away = ways[i].takes_away;
    for (spins = 0; spins < 2; ++spins) {
      value += value % 2;
      make_code(ways[i].protection);
      memset((void*)flags, 0, sizeof flags);
      if ((relation->flags & CLONE_VFORK) != 0) {
        change_by_vforks();
      } else {
        relate();
      }
      munmap(code, 2 * kPage);
    }
  }
}

int main(int count, char** arguments) {
  if (count < 3) return 99;
  calls = atol(arguments[2]);
  for (unsigned i = 0; i < sizeof relations / sizeof *relations; ++i) {
    if (strcmp(relations[i].name, arguments[1]) == 0) relation = &relations[i];
  }
  if (relation == NULL) return 98;
  for (int i = 0; i < kMost; ++i) {
    if (pipe(to[i]) != 0 || pipe(from[i]) != 0) return 97;
  }
  // A process whose parent has left becomes a child of the first one.
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGSEGV, on_fault);
  try_all(count > 3 ? arguments[3] : NULL);
  printf("old code ran %d times\n", stale);
  return stale == 0 ? 0 : 1;
}
