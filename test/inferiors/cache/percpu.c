// Per-CPU counters, increased in restartable sequences (rseq) by threads that share one CPU. A
// sequence takes long, so threads are preempted within it: a recorder that skips the kernel's
// restarts loses counts. The argument says how the descriptor gets to the kernel.
#include <linux/rseq.h>
#include <pthread.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/personality.h>
#include <sys/rseq.h>

enum { kThreads = 4, kRounds = 60, kSpins = 100000, kCpus = 1024, kFill = 8 << 20 };

static long counts[kCpus];
static __thread long restarts;

static struct rseq* area(void) {
  return (struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset);
}

#define ABORT \
  ".pushsection .rseq_abort, \"ax\"\n .long 0x53053053\n 4: jmp %l[again]\n .popsection\n"
#define DESCRIPTOR                                                                       \
  ".pushsection __rseq_cs, \"aw\"\n .balign 32\n 3: .long 0, 0\n .quad 1f, 2f-1f, 4f\n " \
  ".popsection\n"

// Straight code that spends most of its time in one instruction.
static int count_filling(struct rseq* rseq, char* buffer) {
  uint32_t cpu = rseq->cpu_id_start;
  long* slot = &counts[cpu];
  long value;
  void* at = buffer;
  size_t left = kFill;
  __asm__ goto volatile(
      DESCRIPTOR
      "lea 3b(%%rip), %%rax\n mov %%rax, %c[cs](%[rseq])\n"
      "1: cmpl %[cpu], %c[id](%[rseq])\n jne %l[again]\n"
      "mov (%[slot]), %[value]\n inc %[value]\n"
      "mov $0x5a, %%eax\n rep stosb\n"
      "mov %[value], (%[slot])\n 2:\n" ABORT
      : [value] "=&r"(value), "+D"(at), "+c"(left)
      : [rseq] "r"(rseq), [cpu] "r"(cpu), [slot] "r"(slot),
        [cs] "i"(offsetof(struct rseq, rseq_cs)), [id] "i"(offsetof(struct rseq, cpu_id))
      : "rax", "memory", "cc"
      : again);
  return 1;
again:
  return 0;
}

// Code with a loop; its descriptor is made at run time and known only by address.
static int count_looping(struct rseq* rseq, struct rseq_cs* made, long spins) {
  uint32_t cpu = rseq->cpu_id_start;
  long* slot = &counts[cpu];
  long value;
  __asm__ goto volatile(
      "lea 1f(%%rip), %%rax\n mov %%rax, 8(%[made])\n"
      "movq $2f-1f, 16(%[made])\n"
      "lea 4f(%%rip), %%rax\n mov %%rax, 24(%[made])\n"
      "mov %[made], %c[cs](%[rseq])\n"
      "1: cmpl %[cpu], %c[id](%[rseq])\n jne %l[again]\n"
      "mov (%[slot]), %[value]\n inc %[value]\n"
      "5: dec %[spins]\n jnz 5b\n"
      "mov %[value], (%[slot])\n 2:\n" ABORT
      : [value] "=&r"(value), [spins] "+r"(spins)
      : [rseq] "r"(rseq), [cpu] "r"(cpu), [slot] "r"(slot), [made] "r"(made),
        [cs] "i"(offsetof(struct rseq, rseq_cs)), [id] "i"(offsetof(struct rseq, cpu_id))
      : "rax", "memory", "cc"
      : again);
  return 1;
again:
  return 0;
}

static void* work(void* kind) {
  const int looping = strcmp(kind, "loop") == 0;
  char* buffer = malloc(kFill);
  struct rseq_cs* made = aligned_alloc(32, sizeof *made);
  memset(made, 0, sizeof *made);
  for (int i = 0; i < kRounds; ++i) {
    while (!(looping ? count_looping(area(), made, kSpins) : count_filling(area(), buffer)))
      ++restarts;
  }
  return (void*)restarts;
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  if (__rseq_size == 0 || (int)area()->cpu_id < 0) {
    puts("no restartable sequences here");
    return 0;
  }
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET((unsigned)sched_getcpu(), &one);
  sched_setaffinity(0, sizeof one, &one);
  // A recorder can overlook a descriptor made at run time until the thread stops before the kernel
  // has forgotten it, so these rounds are short and a call follows them that is never made
  // unstopped. Nobody else counts now, so nothing is lost.
  const int first = strcmp(argv[1], "loop") == 0 ? 3 : 0;
  for (int i = 0; i < first; ++i) {
    struct rseq_cs* made = aligned_alloc(32, sizeof *made);
    memset(made, 0, sizeof *made);
    while (!count_looping(area(), made, 2)) {
    }
    personality(0xffffffff);
  }
  pthread_t threads[kThreads];
  long again = 0, total = -first;
  for (int i = 0; i < kThreads; ++i) pthread_create(&threads[i], NULL, work, argv[1]);
  for (int i = 0; i < kThreads; ++i) {
    void* more;
    pthread_join(threads[i], &more);
    again += (long)more;
  }
  for (int cpu = 0; cpu < kCpus; ++cpu) total += counts[cpu];
  if (argc > 2) printf("restarted %s\n", again > 0 ? "yes" : "no");
  printf("counted %ld of %d\n", total, kThreads * kRounds);
  return total == kThreads * kRounds ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
