// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// What is likely to run after a superblock, the likeliest first.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"

namespace backtrail::tracee::cache {

/// How many of a thousand places of a kind are executed.
using Chance = std::uint32_t;
inline constexpr Chance kCertain = 1000;

/// A native address that a superblock leads to.
struct LikelyCode {
  /// How: by a direct exit; by an indirect branch, of a return for example; by the pointer that is
  /// stored at `at`.
  enum class Way : std::uint8_t { kDirect, kIndirect, kPointer };
  TraceeAddr at;
  Way way = Way::kDirect;
  Chance chance = kCertain;
};

/// Returns where an exit that can be linked leads, and how likely that is if `chance` is that of
/// the superblock. The exit at a superblock's end has the index 0; conditional jumps follow.
[[nodiscard]] LikelyCode likely_after(const arch::cpu::translate::Exit& exit, std::size_t index,
                                      Chance chance);
/// Returns the chance of a return address, or of what a pointer leads to, likewise.
[[nodiscard]] Chance after_return(Chance chance);
[[nodiscard]] Chance after_pointer(Chance chance);

/// Native addresses to which new superblocks lead, to be translated next.
class LikelyNext {
 public:
  void clear();
  void add(std::span<const LikelyCode> more);
  /// Takes the likeliest, of equally likely ones the oldest; nullopt if none is worth translating.
  [[nodiscard]] std::optional<LikelyCode> take();

 private:
  struct Waiting {
    LikelyCode code;
    std::uint32_t number = 0;  ///< In order of add().
  };
  static bool is_behind(const Waiting& a, const Waiting& b);

  std::vector<Waiting> heap_;
  std::uint32_t added_ = 0;
};

}  // namespace backtrail::tracee::cache
