// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Field offsets in a core's notes, for both program widths. Source: linux/elfcore.h (elf_prstatus,
/// elf_prpsinfo) as the kernel writes it.

#include <array>
#include <cstddef>
#include <span>

#include "arch/cpu/registers.hpp"
#include "arch/isa.hpp"

namespace backtrail::decoder {

/// Offset of pr_cursig, 16 bits, in both widths.
inline constexpr std::size_t kCursigOffset = 12;

struct PrstatusLayout {
  std::size_t bytes;
  std::size_t word_bytes;
  std::size_t held_signals;  ///< Offset of sighold.
  std::size_t pid;           ///< Offset of pid; then ppid, pgrp and sid, 32 bits each.
  std::size_t registers;
  std::span<const arch::cpu::UserReg> order;
  std::size_t has_fp;
};
[[nodiscard]] const PrstatusLayout& prstatus_layout(arch::Isa isa);

inline constexpr std::size_t kPsinfoNameBytes = 16;
inline constexpr std::size_t kPsinfoArgumentBytes = 80;
struct PsinfoLayout {
  std::size_t bytes;
  std::size_t uid;       ///< Offset of uid; then gid, of the same width.
  std::size_t id_bytes;  ///< Size of uid and of gid.
  std::size_t pid;       ///< Offset of pid; then ppid, pgrp and sid.
  std::size_t name;
  std::size_t arguments;
};
[[nodiscard]] const PsinfoLayout& psinfo_layout(arch::Isa isa);

}  // namespace backtrail::decoder
