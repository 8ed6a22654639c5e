/* Start of the judged part of a program: a tracer runs to this trap. */
#define BEGIN() __asm__ volatile("int3")

// SPDX-License-Identifier: Apache-2.0
