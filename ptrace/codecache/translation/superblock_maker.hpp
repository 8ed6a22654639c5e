// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// Translates the program's code into the memory of the code cache.

#include <algorithm>
#include <cstdint>
#include <optional>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"
#include "ptrace/codecache/translation/code_facts.hpp"
#include "ptrace/source/source_kind.hpp"

namespace backtrail::tracee::cache {

/// Appends translations to the code, one after the other, and decides how long superblocks are.
///
/// At first superblocks of code without rseq critical sections are plain: short, ending at calls
/// and where another one begins, so that no code is translated twice. Most code of a short run is
/// executed once. When the program is known to run longer, superblocks are long while there is
/// little code. The more code there is, the more of it runs seldom and the less of it fits in the
/// processor's caches: superblocks then end where another one begins, become shorter, and at last
/// end at calls, too.
class SuperblockMaker {
 public:
  /// Upper limit of the size of a superblock's translation, in bytes.
  static constexpr std::uint32_t kLargestBlock = 16 * 1024;
  /// Bytes of code made here up to which superblocks are plain at first. Large programs run long,
  /// and pay for short superblocks in every later run.
  static constexpr std::uint64_t kMostPlain = 3ULL << 19;

  /// Code that superblocks lead to.
  struct Stubs {
    TraceeAddr dispatch;  ///< The dispatch stub, where exits lead until they are linked.
    TraceeAddr
        after_handler;  ///< The stub where rt_sigreturn continues (DispatchStub::returned_at).
  };
  /// Borrows `memory` and `inline_calls`. Replaces `source.stop_before` and `source.decoded`.
  /// `source.joined_at` returns true where a superblock begins; it is used for plain superblocks
  /// and once there is much code.
  SuperblockMaker(CodeMemory& memory, arch::cpu::translate::CodeSource source, CodeFacts facts,
                  const arch::cpu::translate::InlineSystemCalls& inline_calls, const Stubs& stubs);
  SuperblockMaker(const SuperblockMaker&) = delete;
  SuperblockMaker& operator=(const SuperblockMaker&) = delete;

  /// Translates the code at `start` and appends the translation. Its exits get ids from
  /// `first_exit` on. With `conflict` it begins with an indirect-branch entry, which leads there if
  /// the target does not match. Returns the reason if the first instruction is untranslatable;
  /// UntranslatableReason::kNone if there is no memory left.
  std::variant<arch::cpu::translate::Superblock, arch::cpu::translate::UntranslatableReason> make(
      TraceeAddr start, std::uint32_t first_exit, std::optional<TraceeAddr> conflict);

  /// Takes the memory of a superblock that make() returned and that is not needed any more.
  void recycle(arch::cpu::translate::Superblock&& made) { reused_ = std::move(made); }
  /// Puts the next translation at this code offset or, for alignment, just after it.
  void go_on_at(std::uint64_t offset) { used_ = begin_ = offset; }
  /// Makes superblocks record values from now on.
  void record_values(ValueDepth values) { values_ = values; }
  void keep_code() { keeps_code_ = true; }
  [[nodiscard]] ValueDepth values() const { return values_; }
  [[nodiscard]] bool records_values() const { return values_ != ValueDepth::kFree; }
  /// Makes no more plain superblocks.
  void end_plain() { plain_ = false; }
  /// Returns true if a superblock that starts there is plain.
  [[nodiscard]] bool makes_plain(TraceeAddr start) const {
    return plain_ && (all_plain_ || used_ - begin_ < kMostPlain) && facts_.has_no_sections &&
           facts_.has_no_sections(start);
  }
  /// Returns true if the superblock that was made last is plain.
  [[nodiscard]] bool made_plain() const { return plain_now_; }
  /// Sets whether superblocks are plain however much code there is.
  void set_all_plain(bool on) { all_plain_ = on; }
  /// Limits the code to this number of bytes from now on.
  void limit(std::uint64_t bytes) { limit_ = std::min(bytes, kTranslationBytes); }
  /// Returns true if there is memory for this number of superblocks of any size.
  [[nodiscard]] bool has_room_for(std::uint64_t superblocks) const {
    return used_ + superblocks * kLargestBlock <= limit_;
  }
  /// Makes superblocks that come to this address end before it from now on.
  void split_at(TraceeAddr address) { splits_.insert(address); }

  /// Returns true if the instruction at an address is a conditional jump.
  [[nodiscard]] bool is_conditional(TraceeAddr branch);
  /// Returns the addresses that the instructions in native ranges load (LEA).
  [[nodiscard]] std::vector<TraceeAddr> addresses_in(
      const std::vector<arch::cpu::translate::Branch>& ranges);
  [[nodiscard]] const CodeFacts& facts() const { return facts_; }
  /// Returns the code offset at which the code ends.
  [[nodiscard]] std::uint64_t bytes_used() const { return used_; }
  /// Returns the number of instructions translated until now.
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }

 private:
  /// Returns the aligned code offset of the next translation, and settles the code before it
  /// (CodeMemory::settle_code). Returns nullopt if there is no memory left.
  std::optional<std::uint64_t> reserve(bool has_entry);

  /// Returns true if all of this code is in files.
  [[nodiscard]] bool is_of_files(const std::vector<arch::cpu::translate::Branch>& ranges) const;
  /// Returns the most instructions that a superblock may have.
  [[nodiscard]] std::uint32_t longest_block() const;

  CodeMemory& memory_;
  arch::cpu::translate::CodeSource source_;
  CodeFacts facts_;
  const arch::cpu::translate::InlineSystemCalls& inline_calls_;
  Stubs stubs_;
  arch::cpu::translate::DecodedInsns decoded_;
  arch::cpu::translate::Superblock reused_;
  std::set<TraceeAddr> splits_;
  bool plain_ = true;
  bool all_plain_ = false;
  bool plain_now_ = false;  ///< The superblock that is being made, or was made last, is plain.
  ValueDepth values_ = ValueDepth::kFree;
  bool checked_ = false;     ///< The superblock that is being made is a checked one.
  bool keeps_code_ = false;  ///< There is code that may change, or that is in no file.
  std::uint64_t limit_ = kTranslationBytes;
  std::uint64_t begin_ = 0;  ///< Where the code made here begins.
  std::uint64_t used_ = 0;
  std::uint64_t instructions_ = 0;
};

}  // namespace backtrail::tracee::cache
