// SPDX-License-Identifier: Apache-2.0
#pragma once
/// @file
/// The translations of one address space.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <variant>
#include <vector>

#include "arch/base/address.hpp"
#include "arch/cpu/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/memory/code_memory.hpp"
#include "ptrace/codecache/persist/persistent_file.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/translation/code_facts.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/exit_links.hpp"
#include "ptrace/codecache/translation/exit_profile.hpp"
#include "ptrace/codecache/translation/indirect_branch_table.hpp"
#include "ptrace/codecache/translation/likely_next.hpp"
#include "ptrace/codecache/translation/likely_targets.hpp"
#include "ptrace/codecache/translation/loaded_code.hpp"
#include "ptrace/codecache/translation/loaded_links.hpp"
#include "ptrace/codecache/translation/recorded_values.hpp"
#include "ptrace/codecache/translation/start_filter.hpp"
#include "ptrace/codecache/translation/superblock_maker.hpp"
#include "ptrace/codecache/translation/superblocks.hpp"

namespace backtrail::tracee::cache {

namespace translate = arch::cpu::translate;

/// The meaning of an address in translated code.
struct CodePlace {
  enum class Kind : std::uint8_t { kBlock, kMiss, kReturned };
  Kind kind = Kind::kBlock;  ///< A superblock, the dispatch stub, or the stub after rt_sigreturn.
  translate::PcMapEntry map_entry{};  ///< Where the program's state is; not kReturned.
  decoder::BlockView logged{};        ///< The superblock; kBlock only.
  std::uint32_t number = 0;           ///< Its number in the ExitTable.
  std::size_t values = 0;             ///< How many of its values are recorded before this place.
  bool registers_saved = false;  ///< kMiss only: the thread's slots hold all registers used there.
};

/// The translations of one address space.
///
/// Translations are found by native address: translation() for direct transfers and for threads
/// that enter translated code, ib_entry() for indirect branches. Both translate code that has no
/// translation yet. The code begins with the dispatch stubs, to which exits lead until they are
/// linked; then come the superblocks loaded from the persistent cache, then those of this process.
/// No memory is reused before clear().
///
/// The parts: SuperblockMaker translates. Superblocks finds superblocks. ExitLinks links direct
/// exits, IndirectBranchTable indirect branches. LoadedCode and LoadedLinks manage the translations
/// of the persistent cache. LikelyTargets tells which way superblocks should follow branches.
///
/// Functions that return std::variant<TraceeAddr, UntranslatableReason> return an address in
/// translated code, or the reason if the first instruction is untranslatable;
/// UntranslatableReason::kNone if the memory is full.
class CodeCache {
 public:
  using CodeFacts = cache::CodeFacts;
  /// When translations are saved. kAtEnd: after the last thread has left them; the code is changed
  /// in place. kMeanwhile: while threads run; a copy of the code is changed.
  enum class Keeping : std::uint8_t { kAtEnd, kMeanwhile };

  /// Borrows `memory` and `inline_calls`. Sets `stop_before`, `joined_at`, `likely_target` and
  /// `decoded` of `source`.
  CodeCache(CodeMemory& memory, translate::CodeSource source, CodeFacts facts,
            const translate::InlineSystemCalls& inline_calls);

  /// Loads translations that were made at the same addresses; call before any is made here. Those
  /// of a module are used once activate() is called. Does nothing if they do not fit this build, or
  /// only one of them and those made here record values.
  void load(std::shared_ptr<const PersistentCode> kept);
  /// Returns the loaded translations; nullptr if there are none.
  [[nodiscard]] const std::shared_ptr<const PersistentCode>& loaded() const {
    return loaded_.code();
  }
  /// Uses the loaded translations of the module that is mapped at [begin, end) from now on.
  void activate(TraceeAddr begin, TraceeAddr end);
  /// Drops the translations of the module at [begin, end), which is unmapped or may change from now
  /// on. Its code was that of its file until now, so they may still be saved for other processes.
  void unload(TraceeAddr begin, TraceeAddr end);
  /// Excludes translations that unload() dropped in [begin, end) from being saved.
  void forget_unloaded(TraceeAddr begin, TraceeAddr end);
  /// Calls `use` with all translations that other processes of the program can use. Does nothing
  /// after split_at() or clear().
  void keep(const PersistentModules& modules, Keeping when,
            const std::function<void(const PersistentPieces&)>& use);
  /// Call at the end: tells the memory which code it is left with. `saved` is what was made of the
  /// pieces that keep() has handed over at the end; null if nothing was.
  void leave(const std::shared_ptr<const PersistentCode>& saved);

  /// Returns the translation of the code at `start` for direct transfers. If there is none,
  /// translates it; make_next() then translates some of the code that is likely to run next.
  std::variant<TraceeAddr, translate::UntranslatableReason> translation(TraceeAddr start);
  /// Returns the translation of the code at `start` for indirect branches, which find it by
  /// themselves from now on. The caller must put the program's rcx in its slot.
  std::variant<TraceeAddr, translate::UntranslatableReason> ib_entry(TraceeAddr start);
  /// Translates one superblock that is likely to run soon after the newest one that translation()
  /// or ib_entry() made. Returns false if there is no more that is worth it.
  bool make_next();
  /// Translates all that make_next() would, and more: call where the next miss would be a stop.
  void make_all_next();
  /// Translates the functions at `starts`, for indirect branches, and all code to which they lead:
  /// by direct branches, through pointers that are known, and the functions whose addresses they
  /// take; until there are `most_bytes` of code. Returns the number of superblocks made.
  std::size_t translate_ahead(std::span<const TraceeAddr> starts, const AheadFacts& facts,
                              std::uint64_t most_bytes);
  /// Replaces a superblock that was left by an exit of kind kStale: the program has changed its
  /// code. Returns the new translation, as translation() or ib_entry() does, whichever made the old
  /// one.
  std::variant<TraceeAddr, translate::UntranslatableReason> renew(std::uint32_t exit_id);
  /// Makes an exit lead to `translation`, the translation of its target, from now on.
  void link(std::uint32_t exit_id, TraceeAddr translation);

  /// Drops the translations of [begin, end): threads in them get out at their next exit, and no
  /// thread gets in any more.
  void drop(TraceeAddr begin, TraceeAddr end);
  /// Forgets all translations. No thread may be in one or get into one by itself.
  void clear();
  /// Limits the code to this number of bytes from now on.
  void limit(std::uint64_t bytes) { maker_.limit(bytes); }
  /// Drops the translations that contain this address; superblocks end before it from now on.
  void split_at(TraceeAddr address);

  /// Tells that the program runs for longer than most: gives the code and its look-up table the
  /// memory by which they are fastest, which takes too long for short programs.
  void expect_long_run();
  /// Returns true if the program has written to the memory: IndirectBranchTable::is_damaged().
  [[nodiscard]] bool is_damaged() const { return indirect_.is_damaged(); }
  /// Retranslates superblocks that do not follow the way of most executions. Returns true if there
  /// were any.
  bool retranslate_by_profile(const ExitProfile& profile);
  /// Retranslates superblocks that come to a system call; call after the inline system calls have
  /// changed. Returns false if that is not possible: clear() must be called then.
  bool renew_calls();

  /// Makes superblocks record values from now on; none must have been made or loaded.
  void record_values(ValueDepth values) { maker_.record_values(values); }
  /// Superblocks of code that facts say was made here keep its bytes from now on, wherever they
  /// begin.
  void keep_code() { maker_.keep_code(); }
  [[nodiscard]] bool records_values() const { return maker_.records_values(); }
  [[nodiscard]] ValueDepth values() const { return maker_.values(); }
  /// Returns the meaning of an address; nullopt if it is not in translated code.
  [[nodiscard]] std::optional<CodePlace> locate(TraceeAddr address) const;
  /// Returns the pc of a thread that stopped by the dispatch stub's trap.
  [[nodiscard]] TraceeAddr miss_stop() const { return memory_.code() + miss_.stopped_at; }
  /// Returns the pc of a thread that stopped by the dispatch stub's fault, which it raises instead
  /// of the trap if a filter forbids the call before the trap.
  [[nodiscard]] TraceeAddr miss_fault() const { return memory_.code() + miss_.faults_at; }
  /// Returns true if `address` lies in the stub between rt_sigreturn and the code returned to.
  [[nodiscard]] bool is_after_handler(TraceeAddr address) const {
    const std::uint64_t offset = address - memory_.code();
    return offset >= miss_.returned_at && offset < miss_.code.size();
  }
  /// Returns the table of the exits that log entries name. Never nullptr.
  [[nodiscard]] const std::shared_ptr<decoder::ExitTable>& exits() const { return exits_; }
  /// Returns the exit with this id; nullopt if there is none.
  [[nodiscard]] std::optional<translate::Exit> exit(std::uint32_t exit_id) const;

  /// Returns the bytes of code, loaded code included.
  [[nodiscard]] std::uint64_t bytes_used() const { return maker_.bytes_used(); }
  /// Returns the number of superblocks made, dropped ones included.
  [[nodiscard]] std::size_t blocks() const { return superblocks_.size(); }
  /// Returns the number of superblocks made of code in files, which other processes may have, too.
  [[nodiscard]] std::size_t blocks_of_files() const {
    return superblocks_.size() - superblocks_.made_here();
  }
  /// Returns the number of instructions translated.
  [[nodiscard]] std::uint64_t instructions() const { return maker_.instructions(); }
  /// Returns the number of native bytes that superblocks were made of, each counted once.
  [[nodiscard]] std::uint64_t source_bytes() const { return superblocks_.source_bytes(); }
  /// Returns the number of drops until now. Threads may still be in dropped superblocks.
  [[nodiscard]] std::uint64_t drops() const { return drops_; }
  /// Returns the number of superblocks retranslated by retranslate_by_profile().
  [[nodiscard]] std::uint64_t retranslated() const { return retranslated_; }
  /// Returns the number of calls of renew().
  [[nodiscard]] std::uint64_t renewed() const { return renewed_; }
  /// Returns the number of calls of clear().
  [[nodiscard]] std::uint64_t cleared() const { return cleared_; }

 private:
  enum class Use : std::uint8_t { kDirect, kIndirect };
  /// Most superblocks to be made after one that was wanted.
  struct BatchBlocks {
    std::size_t usual = 0;
    std::size_t plain = 0;  ///< Where superblocks are plain.
  };
  /// The work of make_next().
  struct Ahead {
    LikelyNext next = {};
    BatchBlocks most = {};
    bool after_plain = false;  ///< The wanted superblock is plain.
    std::size_t made = 0;
  };

  /// Sets the functions of `source` that the code cache itself provides.
  translate::CodeSource completed(translate::CodeSource source);
  /// Translates one superblock, which is executed with this chance, links it, and sets found_.
  std::variant<TraceeAddr, translate::UntranslatableReason> make(TraceeAddr start, Use use,
                                                                 Chance chance = kCertain);
  /// Translates one superblock unless there is one; returns true if it did.
  bool make_if_new(TraceeAddr start, Use use, Chance chance = kCertain);
  /// Translates the code at `start`, and notes what is likely to run next.
  std::variant<TraceeAddr, translate::UntranslatableReason> make_some(TraceeAddr start, Use use);
  /// Links the exits of a new superblock, and the exits that lead to its start pc. Adds targets
  /// without a translation to found_.
  void connect(const translate::Superblock& made, std::uint32_t index, Chance chance);
  /// Adds what superblocks reach otherwise than by a direct exit: return addresses of calls, and
  /// what pointers point to.
  void add_indirect(const translate::Superblock& made, Chance chance);
  /// Returns where the pointer at an address leads, if that is known.
  [[nodiscard]] std::optional<TraceeAddr> pointer_at(TraceeAddr at) const;
  void drop_block(std::uint32_t index);
  /// Retranslates a superblock, loaded or not, given by its id in the ExitTable. Returns false if
  /// it is not in use or cannot be retranslated.
  bool retranslate(std::uint32_t logged);
  /// Returns true if the superblock with this id in the ExitTable is a plain one that runs often.
  [[nodiscard]] bool is_hot_and_plain(std::uint32_t logged,
                                      const std::vector<SeenExit>& seen) const;
  /// Returns true if control can still get into the superblock.
  [[nodiscard]] bool is_in_use(const CodeBlock& block) const;
  /// Returns the code offset of the translation of `start` for direct transfers; nullopt if there
  /// is none.
  [[nodiscard]] std::optional<std::uint64_t> find_translation(TraceeAddr start) const;
  /// Makes the filter know all superblocks, from the first that is made here on.
  void note_start(TraceeAddr start);
  /// Returns the address of the dispatch stub for direct exits.
  [[nodiscard]] TraceeAddr miss() const { return memory_.code() + miss_.direct_at; }

  CodeMemory& memory_;
  translate::DispatchStub miss_;  ///< The dispatch stubs.
  std::shared_ptr<decoder::ExitTable> exits_;
  CodeLinks links_;
  Superblocks superblocks_;
  RecordedValues values_;
  ExitLinks exit_links_;
  StartFilter starts_;  ///< Has the start of each superblock that find_translation() finds.
  IndirectBranchTable indirect_;
  LoadedLinks loaded_links_;
  LoadedCode loaded_;
  LikelyTargets likely_;
  SuperblockMaker maker_;
  Ahead likely_next_;
  std::vector<LikelyCode> found_;      ///< Where the newest superblock leads.
  const AheadFacts* ahead_ = nullptr;  ///< Set within translate_ahead().
  bool complete_ = true;               ///< False after split_at() or clear().
  bool calls_renewed_ = false;         ///< renew_calls() was called.
  bool kept_at_end_ = false;           ///< The code is as it was saved.
  std::uint64_t drops_ = 0;
  std::uint64_t retranslated_ = 0;
  std::uint64_t renewed_ = 0;
  std::uint64_t cleared_ = 0;
};

}  // namespace backtrail::tracee::cache
