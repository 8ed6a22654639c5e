// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/indirect_branch_table.hpp"

#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "arch/x86/translate/translator.hpp"
#include "test/unit/ptrace/codecache/translation/fake_code_memory.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::x86::translate;

/// Addresses that share a place in the first table.
constexpr TraceeAddr kA{0x40'1000};
constexpr TraceeAddr kB{0x41'1000};
constexpr TraceeAddr kC{0x42'1000};
/// An address with a place of its own.
constexpr TraceeAddr kOther{0x40'1010};

PersistentIbEntry saved(TraceeAddr start, std::uint64_t entry) {
  return {start, static_cast<std::uint32_t>(entry)};
}

class IndirectBranchTableTest : public testing::Test {
 protected:
  IndirectBranchTableTest() { memory_.fill_table(memory_.code()); }

  /// Makes a superblock with an entry, but does not open that. Returns the entry.
  std::uint64_t make(TraceeAddr start) {
    const std::array ranges{translate::Branch{start, start + 1}};
    const std::array pc_map{translate::PcMapEntry{.pc = start}};
    blocks_.add({.start = start,
                 .offset = offset_,
                 .logged = offset_,
                 .size = 48,
                 .flags = CodeBlock::kIbEntry,
                 .after_entry = kAfterEntry},
                pc_map, ranges);
    const std::uint64_t entry = offset_ + translate::kIbEntryOffset;
    offset_ += 64;
    const auto beginning = translate::ib_entry_beginning(kAfterEntry);
    std::copy(beginning.begin(), beginning.end(), memory_.host_code().subspan(entry).begin());
    links_.point(entry - CodeLinks::kBytes, table_.first(start));
    return entry;
  }
  std::uint64_t open(TraceeAddr start) {
    const std::uint64_t entry = make(start);
    table_.open(start, entry);
    return entry;
  }
  [[nodiscard]] bool finds(TraceeAddr start) const {
    const CodeBlock* found = table_.find(start);
    return found != nullptr && found->start == start;
  }
  [[nodiscard]] std::array<std::uint8_t, 2> beginning_of(std::uint64_t entry) const {
    const auto code = memory_.host_code();
    return {code[entry], code[entry + 1]};
  }
  /// Where an entry leads to if the target is another.
  [[nodiscard]] std::uint64_t next(std::uint64_t entry) const {
    return links_.target_of(entry - CodeLinks::kBytes);
  }
  static constexpr std::uint8_t kAfterEntry = 32;

  FakeCodeMemory memory_;
  CodeLinks links_{memory_.host_code(), memory_.code()};
  Superblocks blocks_;
  IndirectBranchTable table_{memory_.entries(), links_, blocks_, memory_.code()};
  std::uint32_t offset_ = 0x100 - translate::kIbEntryOffset;
};

TEST_F(IndirectBranchTableTest, IsEmptyAtFirst) {
  EXPECT_EQ(table_.find(kA), nullptr);
  EXPECT_EQ(table_.first(kA), memory_.code());
}

TEST_F(IndirectBranchTableTest, EntriesThatShareAPlaceFormAChain) {
  const auto a = open(kA);
  const auto b = open(kB);
  EXPECT_TRUE(finds(kA));
  EXPECT_TRUE(finds(kB));
  EXPECT_FALSE(finds(kC));
  EXPECT_EQ(table_.first(kC), memory_.code() + b);
  EXPECT_EQ(next(b), a);
  EXPECT_EQ(next(a), 0U);
}

TEST_F(IndirectBranchTableTest, AnEntryIsTakenOutOfItsChain) {
  const auto a = open(kA);
  const auto b = open(kB);
  const auto c = open(kC);
  table_.close(kB, b);
  EXPECT_TRUE(finds(kA));
  EXPECT_FALSE(finds(kB));
  EXPECT_TRUE(finds(kC));
  EXPECT_EQ(next(c), a);
  // A thread heading for it is led on.
  EXPECT_EQ(beginning_of(b), translate::kClosedIbEntry);
  EXPECT_EQ(next(b), a);
  table_.close(kC, c);
  EXPECT_EQ(table_.first(kC), memory_.code() + a);
  table_.close(kA, a);
  EXPECT_EQ(table_.first(kC), memory_.code());
}

TEST_F(IndirectBranchTableTest, AClosedEntryIsOpenedAgain) {
  const auto a = open(kA);
  const auto b = open(kB);
  table_.close(kA, a);
  table_.reopen(kA, a);
  EXPECT_EQ(beginning_of(a), translate::ib_entry_beginning(kAfterEntry));
  EXPECT_EQ(table_.first(kA), memory_.code() + a);
  EXPECT_EQ(next(a), b);
  EXPECT_EQ(next(b), 0U);
  // One that was never opened.
  const auto c = make(kC);
  table_.reopen(kC, c);
  EXPECT_TRUE(finds(kC));
  EXPECT_EQ(next(c), a);
}

TEST_F(IndirectBranchTableTest, SavedEntriesOfAModuleAreOpenedAtOnce) {
  // Saved: those of the module that share a place lead to each other.
  const auto a = make(kA);
  const auto b = make(kB);
  links_.point(b - CodeLinks::kBytes, memory_.code() + a);
  const auto other = make(kOther);
  const auto c = open(kC);  // of another module
  const std::array entries{saved(kA, a), saved(kB, b), saved(kOther, other),
                           saved(kB + 0x100'0000, 0x4000)};
  table_.open_saved(entries, {kA, kB + 1});
  EXPECT_TRUE(finds(kA));
  EXPECT_TRUE(finds(kB));
  EXPECT_TRUE(finds(kC));
  EXPECT_TRUE(finds(kOther));
  EXPECT_EQ(table_.first(kA), memory_.code() + b);
  EXPECT_EQ(next(b), a);
  EXPECT_EQ(next(a), c);
  EXPECT_EQ(next(c), 0U);
  EXPECT_EQ(next(other), 0U);
  EXPECT_EQ(table_.find(kB + 0x100'0000), nullptr);
}

TEST_F(IndirectBranchTableTest, IsWidenedOnceAndKeepsItsEntries) {
  const auto a = open(kA);
  const auto b = open(kB);
  table_.widen();
  EXPECT_EQ(memory_.entries().size(), translate::kTableEntries);
  EXPECT_TRUE(finds(kA));
  EXPECT_TRUE(finds(kB));
  table_.make_fit(translate::kTableEntries / 2);
  const std::size_t size = memory_.entries().size();
  table_.widen();
  EXPECT_EQ(memory_.entries().size(), size);
  EXPECT_NE(a, b);
}

TEST_F(IndirectBranchTableTest, ChainsArePartedAsTheTableGrows) {
  if (translate::faster_table_index() != translate::TableIndex::kMasked) {
    GTEST_SKIP() << "this CPU has no PEXT, or a slow one";
  }
  // kA and the last one share a place in the larger table, too.
  const auto a = open(kA);
  const auto b = open(kB);
  const auto again = open(kA + 4 * translate::kTableEntries);
  EXPECT_EQ(next(again), b);
  table_.make_fit(translate::kTableEntries / 2);
  EXPECT_EQ(memory_.entries().size(), 4 * translate::kTableEntries);
  EXPECT_TRUE(finds(kA));
  EXPECT_TRUE(finds(kB));
  EXPECT_TRUE(finds(kA + 4 * translate::kTableEntries));
  EXPECT_EQ(table_.first(kA), memory_.code() + again);
  EXPECT_EQ(next(again), a);
  EXPECT_EQ(next(a), 0U);
  EXPECT_EQ(table_.first(kB), memory_.code() + b);
  EXPECT_EQ(next(b), 0U);
}

TEST_F(IndirectBranchTableTest, IsEmptied) {
  open(kA);
  table_.clear();
  EXPECT_EQ(table_.find(kA), nullptr);
  EXPECT_EQ(table_.first(kA), memory_.code());
}

TEST_F(IndirectBranchTableTest, APlaceThatLeadsToNoEntryEndsItsChain) {
  open(kA);
  EXPECT_FALSE(table_.is_damaged());
  for (const TraceeAddr rubbish :
       {TraceeAddr{}, TraceeAddr{~std::uint64_t{0}}, memory_.code() - 1, memory_.code() + 0x101}) {
    memory_.entries().store(memory_.entries().index(kA), rubbish);
    EXPECT_FALSE(finds(kA));
    EXPECT_EQ(table_.first(kA), memory_.code());
    EXPECT_TRUE(table_.is_damaged());
  }
}

TEST_F(IndirectBranchTableTest, ALinkThatLeadsToNoEntryEndsItsChain) {
  open(kA);
  const auto b = open(kB);
  links_.store(b - CodeLinks::kBytes, 0x5a5a5a5a);
  EXPECT_TRUE(finds(kB));
  EXPECT_FALSE(finds(kA));
  EXPECT_TRUE(table_.is_damaged());
  table_.widen();
  EXPECT_TRUE(finds(kB));
}

TEST_F(IndirectBranchTableTest, AChainThatLeadsBackIntoItselfEnds) {
  const auto a = open(kA);
  const auto b = open(kB);
  links_.point(a - CodeLinks::kBytes, links_.address_of(b));
  EXPECT_FALSE(finds(kC));
  EXPECT_TRUE(table_.is_damaged());
  table_.close(kA, a);
  table_.widen();
  EXPECT_TRUE(finds(kB));
}

}  // namespace
}  // namespace backtrail::tracee::cache
