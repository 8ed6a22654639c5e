#pragma once
/// @file
/// The translations of one address space: finding, making, linking and dropping them.

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <unordered_map>
#include <variant>
#include <vector>

#include "arch/base/chunked_array.hpp"
#include "arch/x86/translate/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/codecache/memory/cache_memory.hpp"
#include "ptrace/codecache/persist/kept_file.hpp"
#include "ptrace/codecache/persist/packed_ranges.hpp"
#include "ptrace/codecache/program/code_modules.hpp"
#include "ptrace/codecache/translation/code_links.hpp"
#include "ptrace/codecache/translation/exit_profile.hpp"
#include "ptrace/codecache/translation/head_table.hpp"

namespace backtrail::tracee::cache {

namespace translate = arch::x86::translate;

class KeptIndex;

/// What a place in translated code is.
struct CodePlace {
  enum class Kind : std::uint8_t { kBlock, kMiss };
  Kind kind = Kind::kBlock;
  translate::PcRow row{};
  decoder::BlockView logged{};   ///< kBlock only.
  bool registers_saved = false;  ///< kMiss only: the slots hold all that the routine needs.
};

class CodeCache {
 public:
  /// What is known of the program's code.
  struct CodeFacts {
    /// Why the instruction at an address is to be left to the CPU; kNone for most.
    std::function<translate::Special(TraceeAddr)> left_to_cpu;
    /// The program may write it at any time, and we would not know.
    std::function<bool(TraceeAddr)> may_change;
    /// Is in no file: nobody else has the same code there.
    std::function<bool(TraceeAddr)> made_here;
    /// Is about to be translated, after it may have changed.
    std::function<void(TraceeAddr)> look_again;
  };

  /// `memory` and `inline_calls` are borrowed. `source` needs no `stop_before`,
  /// `joined_at` and `decoded`.
  CodeCache(CacheMemory& memory, translate::CodeSource source, CodeFacts facts,
            const translate::InlineSystemCalls& inline_calls);

  /// Takes over translations made at the same addresses; before anything else is made. They are
  /// used once their module is there.
  void adopt(std::shared_ptr<const KeptCode> kept);
  [[nodiscard]] const std::shared_ptr<const KeptCode>& adopted() const { return kept_; }
  /// [begin, end) is the module that translations were kept of: they are used from now on.
  void activate(TraceeAddr begin, TraceeAddr end);
  /// [begin, end), which was as its file says, is gone or may change: its translations are dropped,
  /// but may be kept for other processes.
  void retire(TraceeAddr begin, TraceeAddr end);
  /// Those that were retired there are not to be kept.
  void forget_retired(TraceeAddr begin, TraceeAddr end);
  /// kAtEnd: nothing runs from here any more, and it is changed where it lies.
  enum class Keeping : std::uint8_t { kAtEnd, kMeanwhile };
  /// Hands everything on, for other processes, unless it was made for a debugger or forgotten.
  void keep(const KeptModules& modules, Keeping when,
            const std::function<void(const KeptPieces&)>& use);

  /// The translation of the code at `head`, made if need be, with some of what is likely to run
  /// next; Special when there can be none. kNone: the memory for translations is used up.
  std::variant<TraceeAddr, translate::Special> body(TraceeAddr head);
  /// The same for indirect transfers, which find it by themselves from now on: it takes the
  /// program's rcx from its slot.
  std::variant<TraceeAddr, translate::Special> landing(TraceeAddr head);

  /// The same for the target of an exit of kind kStale, whose superblock is not true any more.
  std::variant<TraceeAddr, translate::Special> renew(std::uint32_t exit_number);
  /// Forgets all translations, at once. No thread may be in one, or get there by itself.
  void clear();
  /// Uses no more memory than that from now on.
  void limit(std::uint64_t bytes) { limit_ = std::min(bytes, kTranslationBytes); }

  /// Makes superblocks again along the way that most of their code goes. Whether there were any.
  bool improve(const ExitProfile& profile);
  /// So many, in all.
  [[nodiscard]] std::uint64_t improved() const { return improved_; }

  /// Lets an exit lead to the translation of its target from now on.
  void link(std::uint32_t exit_number, TraceeAddr body);
  /// Translations of [begin, end) are not used any more once their threads have left them.
  void drop(TraceeAddr begin, TraceeAddr end);
  /// How many were dropped until now. Threads may be in them still.
  [[nodiscard]] std::uint64_t drops() const { return drops_; }
  /// Those that come to a system call are made again: the calls that translated code makes itself
  /// are others now. False where that is not possible, and all are to be forgotten.
  bool renew_calls();
  /// A superblock never runs along over this address again.
  void split_at(TraceeAddr address);

  [[nodiscard]] std::optional<CodePlace> locate(TraceeAddr address) const;
  [[nodiscard]] TraceeAddr miss_stop() const { return memory_.code() + miss_.stopped_at; }
  /// Or at that instruction.
  [[nodiscard]] TraceeAddr miss_fault() const { return memory_.code() + miss_.faults_at; }
  [[nodiscard]] const std::shared_ptr<decoder::ExitTable>& exits() const { return exits_; }
  /// What the exit was made for.
  [[nodiscard]] std::optional<translate::Exit> exit(std::uint32_t number) const;

  [[nodiscard]] std::uint64_t bytes_used() const { return used_; }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  /// Those that others may have, too.
  [[nodiscard]] std::size_t blocks_of_files() const { return blocks_.size() - made_here_; }
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }
  /// Bytes of the program that superblocks were made of, each counted once.
  [[nodiscard]] std::uint64_t source_bytes() const;
  /// Superblocks made again because the program had written their code.
  [[nodiscard]] std::uint64_t renewed() const { return renewed_; }
  /// How often everything was forgotten for want of memory.
  [[nodiscard]] std::uint64_t cleared() const { return cleared_; }

 private:
  /// What control can reach from a superblock without our knowing.
  struct Successors {
    std::vector<TraceeAddr> direct;
    std::vector<TraceeAddr> returns;
  };
  enum class Use : std::uint8_t { kDirect, kLanding };
  std::variant<TraceeAddr, translate::Special> make(TraceeAddr head, Use use,
                                                    Successors& successors);
  /// With some of what is likely to run next.
  std::variant<TraceeAddr, translate::Special> make_some(TraceeAddr head, Use use);
  /// Where the next superblock's code goes.
  std::optional<std::uint64_t> reserve(Use use);
  void register_exits(const translate::Superblock& block, std::uint32_t logged);
  /// Lets the exits of a new superblock lead on, and what waited for it to it.
  void connect(const translate::Superblock& made, std::uint32_t block, Successors& successors);
  /// The block that a code offset lies in, by its place in blocks_.
  [[nodiscard]] std::optional<std::uint32_t> block_at(std::uint64_t offset) const;
  /// Returns its place in blocks_.
  std::uint32_t add_block(CodeBlock block, std::span<const translate::PcRow> rows,
                          std::span<const translate::Branch> ranges);
  [[nodiscard]] CodeRanges ranges_of(const CodeBlock& block) const;
  [[nodiscard]] std::span<const std::uint8_t> rows_of(const CodeBlock& block) const;
  /// Points all exits that lead to `head` there.
  void point_exits(const HeadTable::Entry& head, TraceeAddr target);
  // Landing pads that share an entry of the table ask each other in turn. By code offset.
  /// The pad's block; nullptr: there is none.
  [[nodiscard]] const CodeBlock* find_landing(TraceeAddr head) const;
  [[nodiscard]] TraceeAddr first_pad(TraceeAddr head) const;
  [[nodiscard]] TraceeAddr next_pad(std::uint64_t pad) const;
  /// Its conflict link leads to what the entry had.
  void open_pad(TraceeAddr head, std::uint64_t pad);
  /// Makes the table as large as so many pads need.
  void make_table_fit(std::size_t pads);
  /// Nobody finds it any more; who is on the way there goes on to the next one.
  void close_pad(TraceeAddr head, std::uint64_t pad);
  /// As it was when it was made.
  void revive_pad(std::uint64_t pad);
  void begin_pad(std::uint64_t pad, const std::array<std::uint8_t, 2>& with);
  [[nodiscard]] const CodeBlock& block_of_pad(std::uint64_t pad) const;
  void note_pages(std::uint32_t block, std::span<const translate::Branch> ranges);
  void drop_block(std::uint32_t index);
  /// Calls look(place in blocks_, ranges) for those that some of [begin, end) was translated for.
  template <typename Look>
  void for_each_block_in(TraceeAddr begin, TraceeAddr end, Look look);
  /// Modules that overlap [begin, end) are not there any more: what was kept of them is not used.
  void deactivate(TraceeAddr begin, TraceeAddr end);
  /// As they were, between kept translations of a module that has come back.
  void link_again(const translate::Branch& module);
  /// Exits between it and other modules that are used.
  void link_crossing(const translate::Branch& module);
  /// Every exit in the code leads to where it may from the beginning. Returns those that may later.
  std::vector<std::uint32_t> link_as_kept(const KeptIndex& index,
                                          std::span<std::uint8_t> code) const;

  // code_cache_improve.cpp
  struct SeenExit;
  struct LikelyTarget {
    std::optional<TraceeAddr> target;
    std::uint32_t changes = 0;
  };
  [[nodiscard]] std::optional<TraceeAddr> likely_target(TraceeAddr branch) const;
  /// Whether that is news, and to be acted upon.
  bool set_likely(TraceeAddr branch, std::optional<TraceeAddr> target);
  /// An exit that a superblock is mostly left by.
  bool learn_from(const SeenExit& exit);
  [[nodiscard]] bool is_conditional(TraceeAddr branch);
  /// The exits of one superblock that were seen.
  bool goes_another_way(std::vector<SeenExit>& exits);
  /// By its number in the ExitTable. Whether it was made.
  bool make_again(std::uint32_t logged);
  /// By its number in the ExitTable, ours or adopted.
  [[nodiscard]] std::optional<CodeBlock> logged_block(std::uint32_t logged) const;
  /// Control can still get there.
  [[nodiscard]] bool is_in_use(const CodeBlock& block) const;
  /// What led from adopted code to the superblock that was there, `old` in blocks_ or adopted: then
  /// by redirect_adopted(), for several at once.
  void redirect(TraceeAddr head, std::optional<std::uint32_t> old, TraceeAddr body);
  void redirect_adopted();
  /// Calls look(target, code offset of its rel32).
  template <typename Look>
  void for_each_adopted_link(Look look) const;
  /// A superblock of ours by its number in the ExitTable: its place in blocks_.
  [[nodiscard]] std::optional<std::uint32_t> block_of(std::uint32_t logged) const;

  /// Code offset of the translation of `head`.
  [[nodiscard]] std::optional<std::uint64_t> find_body(TraceeAddr head) const;
  [[nodiscard]] bool is_active(TraceeAddr address) const;
  [[nodiscard]] ExitPlace place_of(std::uint32_t exit_number) const;
  [[nodiscard]] TraceeAddr miss() const { return memory_.code() + miss_.direct_at; }
  [[nodiscard]] TraceeAddr indirect_miss() const { return memory_.code(); }
  /// More than any superblock takes.
  static constexpr std::uint32_t kLargestBlock = 16 * 1024;

  CacheMemory& memory_;
  CodeLinks links_;
  CodeFacts facts_;
  translate::DecodedInsns decoded_;
  translate::CodeSource source_;
  const translate::InlineSystemCalls& inline_calls_;
  translate::MissRoutine miss_;
  std::shared_ptr<decoder::ExitTable> exits_;
  ChunkedArray<ExitPlace> places_;     ///< Of our own exits.
  ChunkedArray<std::uint32_t> next_;   ///< Of them: the next one that leads to the same target.
  ChunkedArray<CodeBlock> blocks_;     ///< Ascending by offset.
  ChunkedArray<std::uint8_t> packed_;  ///< Their rows and ranges.
  HeadTable heads_;
  /// Superblocks made of code in a page, by its number.
  std::unordered_map<std::uint64_t, std::vector<std::uint32_t>> by_page_;
  /// Code offsets of rel32 in adopted code that lead to a superblock.
  std::unordered_map<std::uint32_t, std::vector<std::uint32_t>> from_adopted_;
  std::set<TraceeAddr> splits_;
  std::unordered_map<TraceeAddr, LikelyTarget> likely_;       ///< By the branch's address.
  std::unordered_map<TraceeAddr, std::uint32_t> redirected_;  ///< Heads of adopted superblocks.
  std::uint32_t adopted_looks_ = 0;
  std::vector<std::pair<TraceeAddr, std::uint32_t>> adopted_links_;  ///< By target, when wanted.
  std::shared_ptr<const KeptCode> kept_;
  std::uint64_t kept_bytes_ = 0;
  std::uint32_t kept_exits_ = 0;
  std::uint32_t kept_rows_ = 0;
  std::vector<KeptPad> kept_pads_;         ///< Active ones.
  std::vector<translate::Branch> active_;  ///< Modules whose kept translations are used.
  std::vector<translate::Branch> left_;    ///< Modules whose were used.
  bool adopted_current_ = true;
  std::vector<std::uint32_t> links_to_adopted_;
  bool complete_ = true;  ///< All of it is as others would have it, too.
  bool making_checked_ = false;
  bool calls_renewed_ = false;  ///< What comes to a system call is not as others would have it.
  std::uint64_t limit_ = kTranslationBytes;
  std::size_t made_here_ = 0;
  std::size_t open_pads_ = 0;
  std::uint64_t renewed_ = 0;
  std::uint64_t drops_ = 0;
  std::uint64_t improved_ = 0;
  std::uint64_t cleared_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t instructions_ = 0;
};

}  // namespace backtrail::tracee::cache
