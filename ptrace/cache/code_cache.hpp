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

#include "arch/x86/translate/translator.hpp"
#include "decoder/cachelog/exit_table.hpp"
#include "ptrace/cache/cache_memory.hpp"
#include "ptrace/cache/kept_code.hpp"

namespace backtrail::tracee::cache {

namespace translate = arch::x86::translate;

/// What a place in translated code is.
struct CodePlace {
  enum class Kind : std::uint8_t { kBlock, kPad, kMiss };
  Kind kind = Kind::kBlock;
  const translate::PcRow* row = nullptr;         ///< Not for kMiss.
  const decoder::LoggedBlock* logged = nullptr;  ///< kBlock only.
  bool registers_saved = false;                  ///< kMiss only: the slots hold them.
};

class CodeCache {
 public:
  /// What is known of the program's code.
  struct CodeFacts {
    /// Why the instruction at an address is to be left to the CPU; kNone for most.
    std::function<translate::Special(TraceeAddr)> left_to_cpu;
    /// The program may write it at any time.
    std::function<bool(TraceeAddr)> may_change;
    /// Is about to be translated, after it may have changed.
    std::function<void(TraceeAddr)> look_again;
  };

  /// `memory` and `inline_calls` are borrowed. `source` needs no `stop_before` and no
  /// `joined_at`.
  CodeCache(CacheMemory& memory, translate::CodeSource source, CodeFacts facts,
            const translate::InlineSystemCalls& inline_calls);

  /// Takes over translations made at the same addresses; before anything else is made. They are
  /// used once their module is there.
  void adopt(std::shared_ptr<const KeptCode> kept);
  [[nodiscard]] const std::shared_ptr<const KeptCode>& adopted() const { return kept_; }
  /// [begin, end) is the module that translations were kept of: they are used from now on.
  void activate(TraceeAddr begin, TraceeAddr end);
  /// Everything, for other processes; nullptr when something was dropped.
  [[nodiscard]] std::shared_ptr<const KeptCode> keep(std::vector<CodeModule> modules) const;

  /// The translation of the code at `head`, made if need be, with some of what is likely to run
  /// next; Special when there can be none. kNone: the memory for translations is used up.
  std::variant<TraceeAddr, translate::Special> body(TraceeAddr head);

  /// The same for the target of an exit of kind kStale, whose superblock is not true any more.
  std::variant<TraceeAddr, translate::Special> renew(std::uint32_t exit_number);
  /// Forgets all translations, at once. No thread may be in one, or get there by itself.
  void clear();
  /// Uses no more memory than that from now on.
  void limit(std::uint64_t bytes) { limit_ = std::min(bytes, kTranslationBytes); }

  /// Lets an exit lead to the translation of its target from now on.
  void link(std::uint32_t exit_number, TraceeAddr body);
  /// Lets indirect transfers find it.
  void publish(TraceeAddr head, TraceeAddr body);
  /// Translations of [begin, end) are not used any more once their threads have left them.
  void drop(TraceeAddr begin, TraceeAddr end);
  void drop_all();
  /// A superblock never runs along over this address again.
  void split_at(TraceeAddr address);

  [[nodiscard]] std::optional<CodePlace> locate(TraceeAddr address) const;
  [[nodiscard]] TraceeAddr miss_stop() const { return memory_.code() + miss_.stopped_at; }
  [[nodiscard]] const std::shared_ptr<decoder::ExitTable>& exits() const { return exits_; }
  /// What the exit was made for.
  [[nodiscard]] std::optional<translate::Exit> exit(std::uint32_t number) const;

  [[nodiscard]] std::uint64_t bytes_used() const { return used_; }
  [[nodiscard]] std::size_t blocks() const { return blocks_.size(); }
  [[nodiscard]] std::uint64_t instructions() const { return instructions_; }
  /// Bytes of the program that superblocks were made of, each counted once.
  [[nodiscard]] std::uint64_t source_bytes() const;
  /// Superblocks made again because the program had written their code.
  [[nodiscard]] std::uint64_t renewed() const { return renewed_; }
  /// How often everything was forgotten for want of memory.
  [[nodiscard]] std::uint64_t cleared() const { return cleared_; }

 private:
  /// As small as it can be: there are tens of thousands of them.
  struct Block {
    TraceeAddr head;
    const decoder::LoggedBlock* logged = nullptr;
    std::uint32_t offset = 0;
    std::uint32_t size = 0;
    std::uint32_t first_row = 0;  ///< In rows_.
    std::uint32_t row_bytes = 0;
    std::uint32_t first_range = 0;  ///< In ranges_.
    std::uint32_t ranges = 0;
    bool is_pad = false;
    bool checked = false;
    bool dropped = false;
    std::vector<std::uint32_t> incoming;  ///< Code offsets of rel32 that lead here.
  };
  /// What ExitTable does not know of an exit.
  struct ExitPlace {
    std::uint32_t link = 0;  ///< Code offset of the rel32; 0 = cannot be linked.
    translate::ExitKind kind = translate::ExitKind::kDirect;
    translate::Special special = translate::Special::kNone;
  };
  struct Pad {
    std::uint64_t address = 0;  ///< Code offsets.
    std::uint64_t body_link = 0;
    std::uint64_t conflict_link = 0;
    TraceeAddr body;  ///< Where it leads; the miss routine when nowhere.
  };

  /// What control can reach from a superblock without our knowing.
  struct Successors {
    std::vector<TraceeAddr> direct;
    std::vector<TraceeAddr> returns;
  };
  std::variant<TraceeAddr, translate::Special> make(TraceeAddr head, Successors& successors);
  std::optional<std::uint64_t> reserve(std::uint32_t bytes);
  void point(std::uint64_t link, TraceeAddr target);
  void register_exits(const translate::Superblock& block, const decoder::LoggedBlock& logged);
  /// The block or pad that a code offset lies in.
  [[nodiscard]] Block* block_at(std::uint64_t offset) const;
  Block& add_block(TraceeAddr head, std::uint64_t offset, std::size_t size,
                   std::span<const translate::PcRow> rows);
  [[nodiscard]] std::span<const translate::Branch> ranges_of(const Block& block) const {
    return std::span{ranges_}.subspan(block.first_range, block.ranges);
  }
  [[nodiscard]] std::span<const std::uint8_t> rows_of(const Block& block) const {
    return std::span{rows_}.subspan(block.first_row, block.row_bytes);
  }
  /// nullptr: none that may be used.
  Pad* find_pad(TraceeAddr head);
  void note_pages(Block& block);
  void drop_block(Block& block);
  void drop_adopted();
  /// Lets the rel32 lead to a translation; false when there is none.
  bool lead(std::uint64_t link, TraceeAddr body);
  /// Code offset of the translation of `head`.
  [[nodiscard]] std::optional<std::uint64_t> find_body(TraceeAddr head) const;
  [[nodiscard]] bool is_active(TraceeAddr address) const;
  [[nodiscard]] std::uint64_t link_of(std::uint32_t exit_number) const;
  [[nodiscard]] std::optional<CodePlace> locate_adopted(std::uint64_t offset) const;
  [[nodiscard]] TraceeAddr miss() const { return memory_.code(); }

  CacheMemory& memory_;
  CodeFacts facts_;
  translate::CodeSource source_;
  const translate::InlineSystemCalls& inline_calls_;
  translate::MissRoutine miss_;
  std::shared_ptr<decoder::ExitTable> exits_;
  std::vector<ExitPlace> exit_places_;
  std::vector<std::unique_ptr<Block>> blocks_;  ///< Ascending by offset.
  std::vector<std::uint32_t> offsets_;          ///< Of them.
  std::vector<std::uint8_t> rows_;              ///< Packed, block by block.
  std::vector<translate::Branch> ranges_;       ///< Native [begin, end) that blocks were made of.
  std::unordered_map<TraceeAddr, Block*> by_head_;
  std::unordered_map<TraceeAddr, Pad> pads_;  ///< Ours, and those adopted that were asked for.
  /// Superblocks made of code in a page, by its number.
  std::unordered_map<std::uint64_t, std::vector<Block*>> by_page_;
  /// Exits whose target has no translation yet, by target.
  std::unordered_map<TraceeAddr, std::vector<std::uint32_t>> waiting_;
  std::set<TraceeAddr> splits_;
  std::shared_ptr<const KeptCode> kept_;
  std::uint64_t kept_bytes_ = 0;
  std::uint32_t kept_exits_ = 0;
  std::vector<std::pair<TraceeAddr, std::uint32_t>> kept_pads_;  ///< Active ones, ascending.
  std::vector<translate::Branch> active_;  ///< Modules whose kept translations are used.
  bool adopted_current_ = true;
  std::vector<std::uint64_t> links_to_adopted_;
  mutable translate::PcRow located_row_;  ///< What locate() pointed to last.
  mutable decoder::LoggedBlock adopted_block_;
  bool complete_ = true;  ///< Nothing was ever dropped but code that may change.
  bool making_checked_ = false;
  std::uint64_t limit_ = kTranslationBytes;
  std::uint64_t renewed_ = 0;
  std::uint64_t cleared_ = 0;
  std::uint64_t used_ = 0;
  std::uint64_t instructions_ = 0;
};

}  // namespace backtrail::tracee::cache
