// Known values in every vector register that the CPU has, then a label to stop at.
        .text
        .globl  main
        .type   main, @function
main:
        pushq   %rbx
        movl    $7, %eax
        xorl    %ecx, %ecx
        cpuid
        movl    %ebx, features(%rip)
        movdqa  pattern(%rip), %xmm1
        fld1
        fldpi
        testl   $0x10000, features(%rip)        // AVX512F
        jz      have_values
        movl    $0x5a5a, %eax
        kmovw   %eax, %k3
        vmovdqu64 pattern(%rip), %zmm9
        vmovdqu64 pattern(%rip), %zmm30
        .globl  have_values
have_values:
        nop
        fstp    %st(0)
        fstp    %st(0)
        xorl    %eax, %eax
        popq    %rbx
        ret
        .size   main, . - main
        .data
        .balign 64
pattern:
        .quad   0x1111111111111111, 0x2222222222222222, 0x3333333333333333, 0x4444444444444444
        .quad   0x5555555555555555, 0x6666666666666666, 0x7777777777777777, 0x1888888888888888
        .globl  features
features:
        .long   0
        .section .note.GNU-stack, "", @progbits

// SPDX-License-Identifier: Apache-2.0
