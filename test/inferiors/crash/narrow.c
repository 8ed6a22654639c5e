// SPDX-License-Identifier: Apache-2.0
// Dies in a function that keeps a short in a register, of which other code used the upper bits.
static int sink;

__attribute__((noinline)) static int narrow(long wide) {
  register short small asm("ebx") = (short)wide;
  asm volatile("movabs $0x1111111122222222, %%rbx\n\tmovw $0x1234, %%bx" : "=r"(small));
  asm volatile("" : "+r"(small));
  sink = *(volatile int*)16;
  asm volatile("" ::"r"(small));
  return small;
}

int main(int argc, char** argv) {
  (void)argv;
  return narrow(argc);
}
