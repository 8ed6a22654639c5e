// A restartable sequence (rseq): per-CPU counters that are increased without a lock.
#include <linux/rseq.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/rseq.h>

static long counts[256];

// Returns 0 if the sequence was interrupted or the thread's CPU is unknown.
static int count_here(struct rseq* area) {
  unsigned cpu = area->cpu_id_start;
  if ((int)area->cpu_id < 0 || cpu >= 256) return 0;
  __asm__ goto volatile(
      ".pushsection __rseq_cs, \"aw\"\n .balign 32\n"
      "3: .long 0, 0\n .quad 1f, 2f-1f, 4f\n .popsection\n"
      "lea 3b(%%rip), %%rax\n mov %%rax, %c[cs](%[area])\n"
      "1: cmpl %[cpu], %c[id](%[area])\n jnz %l[interrupted]\n"
      "incq (%[slot])\n 2:\n"
      ".pushsection .rseq_abort, \"ax\"\n .long 0x53053053\n 4: jmp %l[interrupted]\n .popsection\n"
      :
      : [area] "r"(area), [cpu] "r"(cpu), [slot] "r"(&counts[cpu]),
        [cs] "i"(offsetof(struct rseq, rseq_cs)), [id] "i"(offsetof(struct rseq, cpu_id))
      : "rax", "memory", "cc"
      : interrupted);
  return 1;
interrupted:
  return 0;
}

int main(void) {
  struct rseq* area = (struct rseq*)((char*)__builtin_thread_pointer() + __rseq_offset);
  long wanted = 2000, otherwise = 0;
  for (long i = 0; i < wanted; ++i) {
    // Libraries do the same: they take another path if there are no sequences.
    if (!count_here(area)) ++otherwise;
  }
  long total = otherwise;
  for (int cpu = 0; cpu < 256; ++cpu) total += counts[cpu];
  printf("sections %s\n", total == wanted ? "right" : "wrong");
  return total == wanted ? 0 : 1;
}

// SPDX-License-Identifier: Apache-2.0
