// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Where the kernel keeps the registers of the code that a signal interrupted.
/// Source: arch/x86/include/asm/sigframe.h, uapi/asm/ucontext.h, uapi/asm/sigcontext.h.

#include <array>
#include <cstdint>

#include "arch/x86/values/slots.hpp"

namespace backtrail::arch::x86::values {

/// Distance from the handler's stack pointer to struct ucontext, which rsp points to at
/// rt_sigreturn.
inline constexpr std::int64_t kContextOffset = 8;

/// A general register in struct ucontext.
struct FrameWord {
  Slot slot;
  std::int64_t offset;
};
/// The registers that nobody but the program changes in a frame. Recorders have changed r10 and
/// r11.
inline constexpr std::array<FrameWord, 14> kFrameWords{{{8, 40},
                                                        {9, 48},
                                                        {12, 72},
                                                        {13, 80},
                                                        {14, 88},
                                                        {15, 96},
                                                        {kRdi, 104},
                                                        {kRsi, 112},
                                                        {kRbp, 120},
                                                        {kRbx, 128},
                                                        {kRdx, 136},
                                                        {kRax, 144},
                                                        {kRcx, 152},
                                                        {kRsp, 160}}};
inline constexpr std::array<FrameWord, 2> kMoreFrameWords{{{10, 56}, {kR11, 64}}};
/// Where the pc is in struct ucontext.
inline constexpr std::int64_t kFramePcOffset = 168;
/// A part of struct ucontext.
struct FrameRange {
  std::uint64_t offset;
  std::uint64_t bytes;
};
/// Fields that recorders and debuggers may have changed: r10 and r11, the pc and the flags, the
/// signal mask.
inline constexpr std::array<FrameRange, 3> kChangedInFrames{{{56, 16}, {168, 16}, {296, 8}}};

}  // namespace backtrail::arch::x86::values
