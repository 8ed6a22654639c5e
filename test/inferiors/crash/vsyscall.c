// Asks the vsyscall page for the time, which the kernel answers itself, and crashes.
int main(void) {
  long seconds;
  __asm__ volatile(
      "xor %%edi, %%edi\n"
      "mov $0xffffffffff600400, %%rax\n"
      "call *%%rax\n"
      ".globl after_call\n"
      "after_call: mov %%rax, %0\n"
      : "=r"(seconds)
      :
      : "rax", "rcx", "rdi", "r11", "memory");
  return *(volatile int*)(seconds & 1);
}

// SPDX-License-Identifier: Apache-2.0
