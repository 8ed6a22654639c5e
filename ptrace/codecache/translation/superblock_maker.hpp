// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translating the program's code into the memory of the code cache.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <variant>

#include "arch/base/address.hpp"
#include "arch/x86/translate/translator.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"
#include "ptrace/codecache/translation/code_facts.hpp"

namespace backtrail::tracee::cache {

/// Translates superblocks, one after the other, to where the code ends; decides how long they are.
///
/// Superblocks of a small program are long. Where there is much code, most of it runs seldom, and
/// the processor's caches are what it is short of: superblocks get shorter, then end where another
/// one begins, then end with calls.
class SuperblockMaker {
 public:
  /// More than any superblock takes, in bytes.
  static constexpr std::uint32_t kLargestBlock = 16 * 1024;

  /// Code that superblocks lead to, made once.
  struct Stubs {
    TraceeAddr dispatch;  ///< The dispatch stub, where exits lead to at first.
    TraceeAddr
        after_handler;  ///< The stub where rt_sigreturn continues (MissRoutine::returned_at).
  };
  /// Borrows `memory` and `inline_calls`. `source.stop_before` and `source.decoded` are replaced;
  /// `source.joined_at`, which says where superblocks begin already, counts only where there is
  /// much code.
  SuperblockMaker(CodeMemory& memory, arch::x86::translate::CodeSource source, CodeFacts facts,
                  const arch::x86::translate::InlineSystemCalls& inline_calls, const Stubs& stubs);
  SuperblockMaker(const SuperblockMaker&) = delete;
  SuperblockMaker& operator=(const SuperblockMaker&) = delete;

  /// Translates the code at `head` and puts it where bytes_used() ended. Its exits are numbered
  /// from `first_exit` on. With `conflict` it begins with an entry for indirect branches, which
  /// leads there if the target is another. Returns why the first instruction cannot be translated;
  /// Special::kNone if there is no memory left.
  std::variant<arch::x86::translate::Superblock, arch::x86::translate::Special> make(
      TraceeAddr head, std::uint32_t first_exit, std::optional<TraceeAddr> conflict);

  /// The next superblock goes to this code offset at the earliest.
  void go_on_at(std::uint64_t offset) { used_ = offset; }
  /// Uses no more than that number of bytes from now on.
  void limit(std::uint64_t bytes) { limit_ = std::min(bytes, kTranslationBytes); }
  /// Whether there is memory for that number of superblocks of any size.
  [[nodiscard]] bool has_room_for(std::uint64_t superblocks) const {
    return used_ + superblocks * kLargestBlock <= limit_;
  }
  /// No superblock runs along over this address from now on.
  void split_at(TraceeAddr address) { splits_.insert(address); }

  /// Whether the instruction at an address is a conditional jump.
  [[nodiscard]] bool is_conditional(TraceeAddr branch);
  [[nodiscard]] const CodeFacts& facts() const { return facts_; }
  /// Where the code ends.
  [[nodiscard]] std::uint64_t bytes_used() const { return used_; }
  /// Instructions translated until now.
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }

 private:
  /// Aligns and settles the place of the next superblock; nullopt if there is no memory left.
  std::optional<std::uint64_t> reserve(bool has_entry);

  CodeMemory& memory_;
  arch::x86::translate::CodeSource source_;
  CodeFacts facts_;
  const arch::x86::translate::InlineSystemCalls& inline_calls_;
  Stubs stubs_;
  arch::x86::translate::DecodedInsns decoded_;
  std::set<TraceeAddr> splits_;
  bool checked_ = false;  ///< The superblock that is being made compares its code (CodeFacts).
  std::uint64_t limit_ = kTranslationBytes;
  std::uint64_t used_ = 0;
  std::uint64_t instructions_ = 0;
};

}  // namespace backtrail::tracee::cache
