// Changes code and a constant of its file in all ways in which a program can, calls mark() after
// each change of the constant, and crashes where both are again what the file has. Without a
// library, so that few steps lead to its end.
#include <fcntl.h>
#include <stdint.h>
#include <sys/mman.h>
#include <sys/syscall.h>

enum { kPage = 4096 };

const uint64_t constant[kPage / 8] __attribute__((aligned(4096))) = {0x1111};
const uint64_t other[kPage / 8] __attribute__((aligned(4096))) = {0x2222};

// lea 1(%rdi), %eax; ret
__asm__(
    ".section .patched, \"ax\", @progbits\n"
    ".balign 4096\n"
    ".globl add_some\n"
    ".type add_some, @function\n"
    "add_some: .byte 0x8d, 0x47, 1, 0xc3, 0x90, 0x90, 0x90, 0x90\n"
    ".size add_some, . - add_some\n"
    ".balign 4096\n"
    ".text\n");
int add_some(int number);

volatile int marked;

void mark(int number) {
  marked = number;
}

static long call(long number, const void* a, long b, long c, long d, long e, long f) {
  register long r10 __asm__("r10") = d;
  register long r8 __asm__("r8") = e;
  register long r9 __asm__("r9") = f;
  long result = number;
  __asm__ volatile("syscall"
                   : "+a"(result)
                   : "D"(a), "S"(b), "d"(c), "r"(r10), "r"(r8), "r"(r9)
                   : "rcx", "r11", "memory");
  return result;
}

static int protect(const void* page, int protection) {
  return (int)call(SYS_mprotect, page, kPage, protection, 0, 0, 0);
}

static long map(const void* at, int protection, int flags, int file, long offset) {
  return call(SYS_mmap, at, kPage, protection, flags | MAP_PRIVATE, file, offset);
}

/// Writes the first 8 bytes of a page of the file while it can be written and not executed.
static int fill(const void* page, uint64_t bytes, int protection) {
  if (protect(page, PROT_READ | PROT_WRITE) != 0) return -1;
  *(volatile uint64_t*)page = bytes;
  return protect(page, protection);
}

/// Returns the offset of a page of the program's file that begins with these bytes.
static long offset_of(int file, uint64_t bytes) {
  for (long at = 0;; at += kPage) {
    uint64_t first;
    if (call(SYS_pread64, (void*)(long)file, (long)&first, 8, at, 0, 0) != 8) return -1;
    if (first == bytes) return at;
  }
}

static int change_code(void) {
  const int executable = PROT_READ | PROT_EXEC;
  int sum = add_some(0);
  // mov %edi, %eax; add $5, %eax; ret
  if (fill((void*)add_some, 0x9090c305c083f889, executable) != 0) return -1;
  sum += add_some(sum);
  // lea 3(%rdi), %eax; ret
  if (fill((void*)add_some, 0x90909090c303478d, executable) != 0) return -1;
  sum += add_some(sum);
  // At last what the file has.
  if (fill((void*)add_some, 0x90909090c301478d, executable) != 0) return -1;
  sum += add_some(sum);
  volatile uint64_t* made =
      (volatile uint64_t*)map(0, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_ANONYMOUS, -1, 0);
  if ((long)made < 0) return -1;
  for (uint64_t addend = 1; addend < 4; ++addend) {
    *made = 0x90909090c300478d | addend << 16;  // lea ADDEND(%rdi), %eax; ret
    sum += ((int (*)(int))made)(sum);
  }
  *made = 0xc3;
  return sum;
}

static int change_constant(void) {
  const int file = (int)call(SYS_open, "/proc/self/exe", O_RDONLY, 0, 0, 0, 0);
  const long own = offset_of(file, 0x1111);
  const long others = offset_of(file, 0x2222);
  mark(0);
  if (fill(constant, 0x3333, PROT_READ) != 0) return -1;
  mark(1);
  if (call(SYS_madvise, constant, kPage, MADV_DONTNEED, 0, 0, 0) != 0) return -1;
  mark(2);
  if (map(constant, PROT_READ, MAP_FIXED, file, others) != (long)constant) return -1;
  mark(3);
  if (call(SYS_munmap, constant, kPage, 0, 0, 0, 0) != 0) return -1;
  mark(4);
  const int fixed = MAP_ANONYMOUS | MAP_FIXED;
  if (map(constant, PROT_READ | PROT_WRITE, fixed, -1, 0) != (long)constant) return -1;
  if (fill(constant, 0x4444, PROT_READ) != 0) return -1;
  mark(5);
  const int moves = MREMAP_MAYMOVE | MREMAP_FIXED;
  if (call(SYS_mremap, other, kPage, kPage, moves, (long)constant, 0) != (long)constant) return -1;
  mark(6);
  if (map(constant, PROT_READ, MAP_FIXED, file, own) != (long)constant) return -1;
  mark(7);
  return 0;
}

void _start(void) {
  const int sum = change_code();
  if (sum > 0 && change_constant() == 0) *(volatile int*)8 = sum;
  call(SYS_exit_group, (void*)2, 0, 0, 0, 0, 0);
}

// SPDX-License-Identifier: Apache-2.0
