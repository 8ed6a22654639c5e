// Branches that are easily recorded wrong. Exits with 0.
  .globl _start
  .text
_start:
  xor %eax, %eax
  je 1f                       # taken, to the next instruction
1:
  call 2f                     # a call to the next instruction
2:
  pop %rbx
  mov $5, %ecx
3:
  loop 3b
  mov $3, %ecx
4:
  cmp $1, %ecx
  loopne 4b
  jrcxz 5f
  nop
5:
  xor %ecx, %ecx
  jrcxz 6f
  ud2
6:
  jecxz 7f
  ud2
7:
  je 8f                       # into the middle of an instruction: over the lock prefix
  .byte 0xf0
8:
  cmpxchg %rcx, counter(%rip)
  lea 9f(%rip), %r10
  jmp *%r10
9:
  lea table(%rip), %r11
  mov $2, %eax
  call *(%r11,%rax,8)
  push %rsp
  pop %rdx
  call *rdx_target(%rip)
  sub $16, %rsp
  lea callee(%rip), %rax
  mov %rax, 8(%rsp)
  call *8(%rsp)               # the operand is read before the push
  add $16, %rsp
  push $11
  push $22
  call takes_two              # ret imm16
  mov $200, %r12d
10:
  mov %r12, %r10
  and $3, %r10d
  lea table(%rip), %r11
  call *(%r11,%r10,8)
  dec %r12d
  jne 10b
  pushf
  pop %r10
  push %r10
  popf
  rep; nop
  mov $64, %ecx
  lea source(%rip), %rsi
  lea sink(%rip), %rdi
  rep movsb
  mov $64, %ecx
  lea source(%rip), %rsi
  lea sink(%rip), %rdi
  repe cmpsb
  jne bad
  mov %gs, %eax
  rdsspq %rax
  .byte 0x66, 0x66, 0x48, 0xe8 # the call of a thread-local access: both prefixes are void
  .long callee - .- 4
  .byte 0xf2                  # bnd
  call callee
  notrack jmp *last(%rip)
bad:
  ud2
11:
  xor %edi, %edi
  mov $231, %eax
  syscall
  ud2

callee:
  add $1, %r15
  rep ret
other:
  add $2, %r15
  jmp callee                  # a tail call
takes_two:
  mov 8(%rsp), %r11
  mov 16(%rsp), %r10
  ret $16

  .data
  .balign 8
counter: .quad 0
table: .quad callee, other, callee, other
rdx_target: .quad callee
last: .quad 11b
source: .fill 64, 1, 7
sink: .fill 64, 1, 0

// SPDX-License-Identifier: Apache-2.0
