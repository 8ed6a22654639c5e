// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The translations of one address space: finding, making, linking, dropping and saving them.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <variant>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/x86/translate/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"
#include "ptrace/codecache/persist/kept_file.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/translation/code_facts.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/exit_links.hpp"
#include "ptrace/codecache/translation/exit_profile.hpp"
#include "ptrace/codecache/translation/indirect_branch_table.hpp"
#include "ptrace/codecache/translation/likely_targets.hpp"
#include "ptrace/codecache/translation/loaded_code.hpp"
#include "ptrace/codecache/translation/loaded_links.hpp"
#include "ptrace/codecache/translation/superblock_maker.hpp"
#include "ptrace/codecache/translation/superblocks.hpp"

namespace backtrail::tracee::cache {

namespace translate = arch::x86::translate;

/// The meaning of a place in translated code.
struct CodePlace {
  enum class Kind : std::uint8_t { kBlock, kMiss, kReturned };
  Kind kind = Kind::kBlock;  ///< A superblock, the dispatch stub, or the stub after rt_sigreturn.
  translate::PcRow row{};    ///< Where the program's state is.
  decoder::BlockView logged{};   ///< The superblock; kBlock only.
  bool registers_saved = false;  ///< kMiss only: the thread's slots hold all registers used there.
};

/// The translations of one address space.
///
/// Translations are found by native address: body() for direct transfers and for threads that enter
/// translated code, landing() for indirect branches. Both translate what is not there. The code
/// begins with the dispatch stubs, to which exits lead until they are linked; then come the
/// superblocks loaded from the persistent cache, then those of this process. Memory is used until
/// it is full; then clear() forgets all.
///
/// The parts: SuperblockMaker translates, Superblocks knows what was made, ExitLinks links direct
/// exits, IndirectBranchTable the indirect ones, LoadedCode and LoadedLinks look after the
/// persistent cache's, LikelyTargets tells which way to translate.
///
/// Functions that return std::variant<TraceeAddr, Special> return the address in translated code,
/// or why the first instruction cannot be translated; Special::kNone if the memory is used up.
class CodeCache {
 public:
  using CodeFacts = cache::CodeFacts;
  /// When translations are saved: kAtEnd, nothing runs from here any more, and the code is changed
  /// where it lies; kMeanwhile, a copy is.
  enum class Keeping : std::uint8_t { kAtEnd, kMeanwhile };

  /// `memory` and `inline_calls` are borrowed. `source` needs no `stop_before`, `joined_at`,
  /// `likely_target` and `decoded`.
  CodeCache(CodeMemory& memory, translate::CodeSource source, CodeFacts facts,
            const translate::InlineSystemCalls& inline_calls);

  /// Takes over translations that were made at the same addresses, before any is made here. Each
  /// module's are used once it is activated. Without effect if they do not fit this build.
  void adopt(std::shared_ptr<const KeptCode> kept);
  /// The translations taken over; nullptr if there are none.
  [[nodiscard]] const std::shared_ptr<const KeptCode>& adopted() const { return loaded_.code(); }
  /// The module that adopted translations were made of is mapped at [begin, end): they are used
  /// from now on.
  void activate(TraceeAddr begin, TraceeAddr end);
  /// The module at [begin, end), which was as its file says, is gone or may change: its
  /// translations are dropped, but may be saved for other processes.
  void retire(TraceeAddr begin, TraceeAddr end);
  /// Translations that were retired in [begin, end) are not to be saved.
  void forget_retired(TraceeAddr begin, TraceeAddr end);
  /// Calls `use` with all translations that other processes of the program can use. Does nothing if
  /// some were made for a debugger or were forgotten.
  void keep(const KeptModules& modules, Keeping when,
            const std::function<void(const KeptPieces&)>& use);

  /// The translation of the code at `head` for direct transfers. If it must be made, some of what
  /// is likely to run next is translated, too.
  std::variant<TraceeAddr, translate::Special> body(TraceeAddr head);
  /// The translation of the code at `head` for indirect branches, which find it by themselves from
  /// now on. It takes the program's rcx from its slot.
  std::variant<TraceeAddr, translate::Special> landing(TraceeAddr head);
  /// The translation that replaces a superblock left by an exit of kind kStale: the program has
  /// changed its code. Entered as the old one was, by body() or landing().
  std::variant<TraceeAddr, translate::Special> renew(std::uint32_t exit_number);
  /// Makes an exit lead to `body`, the translation of its target, from now on.
  void link(std::uint32_t exit_number, TraceeAddr body);

  /// Drops the translations of [begin, end): threads in them get out at their next exit, and no
  /// other gets in.
  void drop(TraceeAddr begin, TraceeAddr end);
  /// Forgets all translations at once. No thread may be in one, or get there by itself.
  void clear();
  /// Uses no more than that number of bytes from now on.
  void limit(std::uint64_t bytes) { maker_.limit(bytes); }
  /// Drops the translations that run along over this address, as none does from now on.
  void split_at(TraceeAddr address);

  /// Retranslates superblocks along the way that most of their executions go. Returns whether there
  /// were any.
  bool improve(const ExitProfile& profile);
  /// Retranslates superblocks that come to a system call, after the calls that translated code
  /// makes itself have changed. Returns false if that is not possible, and all must be forgotten.
  bool renew_calls();

  /// Tells what an address in translated code means; nullopt if it is in none.
  [[nodiscard]] std::optional<CodePlace> locate(TraceeAddr address) const;
  /// The pc of a thread that stopped in the dispatch stub by its trap.
  [[nodiscard]] TraceeAddr miss_stop() const { return memory_.code() + miss_.stopped_at; }
  /// The pc of a thread that stopped there by a fault, where a filter forbids the trap's calls.
  [[nodiscard]] TraceeAddr miss_fault() const { return memory_.code() + miss_.faults_at; }
  /// Returns true if `address` lies in the stub between rt_sigreturn and the code returned to.
  [[nodiscard]] bool is_after_handler(TraceeAddr address) const {
    const std::uint64_t offset = address - memory_.code();
    return offset >= miss_.returned_at && offset < miss_.code.size();
  }
  /// The exits that the ids in logs stand for. Never nullptr.
  [[nodiscard]] const std::shared_ptr<decoder::ExitTable>& exits() const { return exits_; }
  /// The exit with this id, as it was made; nullopt if there is none.
  [[nodiscard]] std::optional<translate::Exit> exit(std::uint32_t number) const;

  /// Bytes of code, adopted code included.
  [[nodiscard]] std::uint64_t bytes_used() const { return maker_.bytes_used(); }
  /// Superblocks made, dropped ones included.
  [[nodiscard]] std::size_t blocks() const { return superblocks_.size(); }
  /// Superblocks made of code that other processes may have, too.
  [[nodiscard]] std::size_t blocks_of_files() const {
    return superblocks_.size() - superblocks_.made_here();
  }
  /// Instructions translated.
  [[nodiscard]] std::uint64_t instructions() const { return maker_.instructions(); }
  /// Bytes of the program that superblocks were made of, each counted once.
  [[nodiscard]] std::uint64_t source_bytes() const { return superblocks_.source_bytes(); }
  /// Drops until now. Threads may be in dropped superblocks still.
  [[nodiscard]] std::uint64_t drops() const { return drops_; }
  /// Superblocks retranslated by improve().
  [[nodiscard]] std::uint64_t improved() const { return improved_; }
  /// Superblocks replaced because the program had written their code.
  [[nodiscard]] std::uint64_t renewed() const { return renewed_; }
  /// Calls of clear().
  [[nodiscard]] std::uint64_t cleared() const { return cleared_; }

 private:
  /// Native addresses that control reaches from a superblock without a miss the tracer sees.
  struct Successors {
    std::vector<TraceeAddr> direct;
    std::vector<TraceeAddr> returns;
  };
  enum class Use : std::uint8_t { kDirect, kLanding };

  /// Adds to `source` what the code cache itself knows of the program's code.
  translate::CodeSource completed(translate::CodeSource source);
  std::variant<TraceeAddr, translate::Special> make(TraceeAddr head, Use use,
                                                    Successors& successors);
  /// Translates the code at `head` and some of what is likely to run next.
  std::variant<TraceeAddr, translate::Special> make_some(TraceeAddr head, Use use);
  /// Makes the exits of a new superblock lead on, and what waited for it lead to it.
  void connect(const translate::Superblock& made, std::uint32_t index, Successors& successors);
  void drop_block(std::uint32_t index);
  /// Replaces a superblock, adopted or not, by its id in the ExitTable. Returns whether it was.
  bool make_again(std::uint32_t logged);
  /// Whether control can still get there.
  [[nodiscard]] bool is_in_use(const CodeBlock& block) const;
  /// Code offset of the translation of `head` for direct transfers.
  [[nodiscard]] std::optional<std::uint64_t> find_body(TraceeAddr head) const;
  /// The dispatch stub that direct exits lead to.
  [[nodiscard]] TraceeAddr miss() const { return memory_.code() + miss_.direct_at; }

  CodeMemory& memory_;
  translate::MissRoutine miss_;  ///< The dispatch stubs.
  std::shared_ptr<decoder::ExitTable> exits_;
  CodeLinks links_;
  Superblocks superblocks_;
  ExitLinks exit_links_;
  IndirectBranchTable indirect_;
  LoadedLinks loaded_links_;
  LoadedCode loaded_;
  LikelyTargets likely_;
  SuperblockMaker maker_;
  bool complete_ = true;        ///< All of it is as other processes would have it, too.
  bool calls_renewed_ = false;  ///< Superblocks that come to a system call are not.
  std::uint64_t drops_ = 0;
  std::uint64_t improved_ = 0;
  std::uint64_t renewed_ = 0;
  std::uint64_t cleared_ = 0;
};

}  // namespace backtrail::tracee::cache
