# A static program without a C library: exits with 3.
	.globl _start
	.text
_start:
	mov $60, %eax
	mov $3, %edi
	syscall

// SPDX-License-Identifier: Apache-2.0
