// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/superblock_maker.hpp"

#include <gtest/gtest.h>

#include "test/unit/ptrace/codecache/translation/fake_code_memory.hpp"
#include "test/unit/ptrace/codecache/translation/fake_program.hpp"

namespace backtrail::tracee::cache {
namespace {

namespace translate = arch::x86::translate;
using Program = FakeProgram;

constexpr std::uint64_t kBytes = 4ULL << 20;
constexpr std::uint64_t kBegin = 0x100;

class SuperblockMakerTest : public testing::Test {
 protected:
  SuperblockMakerTest() {
    maker_.limit(kBytes);
    maker_.go_on_at(kBegin);
  }
  translate::Superblock make(TraceeAddr start, std::optional<TraceeAddr> conflict = {}) {
    auto made = maker_.make(start, 10, conflict);
    EXPECT_TRUE(std::holds_alternative<translate::Superblock>(made));
    return std::get<translate::Superblock>(std::move(made));
  }
  [[nodiscard]] translate::CodeSource source() {
    translate::CodeSource source = program_.source();
    source.joined_at = [this](TraceeAddr at) { return at == joined_; };
    return source;
  }

  Program program_;
  TraceeAddr joined_;
  FakeCodeMemory memory_{kBytes};
  translate::InlineSystemCalls calls_{};
  SuperblockMaker maker_{memory_,
                         source(),
                         program_.facts(),
                         calls_,
                         {.dispatch = memory_.code() + 8, .after_handler = memory_.code() + 16}};
};

TEST_F(SuperblockMakerTest, PutsCodeWhereTheLastOneEnded) {
  const auto made = make(Program::kStart);
  EXPECT_EQ(made.address, memory_.code() + kBegin);
  EXPECT_TRUE(
      std::equal(made.code.begin(), made.code.end(), memory_.host_code().subspan(kBegin).begin()));
  EXPECT_EQ(maker_.bytes_used(), kBegin + made.code.size());
  EXPECT_EQ(maker_.instructions(), made.instructions);
  EXPECT_EQ(memory_.settled(), kBegin);
  for (const translate::Exit& exit : made.exits) EXPECT_GE(exit.id, 10U);
  const auto next = make(Program::kTarget);
  EXPECT_GE(next.address, made.address + made.code.size());
  EXPECT_EQ(next.address.value() % 16, 0U);
}

TEST_F(SuperblockMakerTest, AlignsIndirectBranchEntries) {
  const auto made = make(Program::kTarget, memory_.code());
  EXPECT_EQ((made.address + translate::kIbEntryOffset).value() % translate::kIbEntryAlignment, 0U);
  EXPECT_GT(made.after_entry, translate::kIbEntryOffset);
}

TEST_F(SuperblockMakerTest, StopsWhereMemoryEnds) {
  maker_.limit(kBegin + SuperblockMaker::kLargestBlock);
  EXPECT_TRUE(maker_.has_room_for(1));
  EXPECT_FALSE(maker_.has_room_for(2));
  (void)make(Program::kStart);
  EXPECT_FALSE(maker_.has_room_for(1));
  const auto made = maker_.make(Program::kTarget, 10, std::nullopt);
  EXPECT_EQ(std::get<translate::UntranslatableReason>(made),
            translate::UntranslatableReason::kNone);
}

TEST_F(SuperblockMakerTest, SaysWhyCodeCannotBeTranslated) {
  const auto made = maker_.make(Program::kBegin + Program::kBytes, 10, std::nullopt);
  EXPECT_EQ(std::get<translate::UntranslatableReason>(made),
            translate::UntranslatableReason::kUnreadable);
  EXPECT_EQ(maker_.bytes_used(), kBegin);
}

TEST_F(SuperblockMakerTest, DoesNotRunOverSplitsAndCodeLeftToTheCpu) {
  EXPECT_EQ(make(Program::kTarget).instructions, 2U);
  maker_.split_at(Program::kTarget + 1);
  EXPECT_EQ(make(Program::kTarget).instructions, 1U);
  EXPECT_EQ(make(Program::kStart).instructions, 3U);
  program_.leave_to_cpu(Program::kJump);
  EXPECT_EQ(make(Program::kStart).instructions, 1U);
}

TEST_F(SuperblockMakerTest, DoesNotFollowJumpsIntoCodeThatMayChange) {
  CodeFacts facts = program_.facts();
  facts.undisturbed = [](TraceeAddr at) {
    return at < Program::kTarget ? std::pair{Program::kBegin, Program::kTarget}
                                 : std::pair{Program::kTarget, Program::kBegin + Program::kBytes};
  };
  facts.may_change = [](TraceeAddr at) { return at >= Program::kTarget; };
  program_.put(0, {0xeb, 0x0e});  // jmp kTarget
  SuperblockMaker maker{memory_,
                        source(),
                        std::move(facts),
                        calls_,
                        {.dispatch = memory_.code() + 8, .after_handler = memory_.code() + 16}};
  maker.go_on_at(kBegin);
  maker.limit(kBytes);
  const auto made = maker.make(Program::kStart, 10, std::nullopt);
  EXPECT_TRUE(std::get<translate::Superblock>(made).branches.empty());
}

TEST_F(SuperblockMakerTest, ChecksCodeThatMayChange) {
  EXPECT_EQ(program_.looks(), 0);
  program_.set_may_change(true);
  const auto made = make(Program::kTarget);
  EXPECT_EQ(program_.looks(), 1);
  EXPECT_TRUE(std::any_of(made.exits.begin(), made.exits.end(), [](const auto& exit) {
    return exit.kind == translate::ExitKind::kStale;
  }));
}

TEST_F(SuperblockMakerTest, PlainOnesEndAtCallsAndWhereAnotherBegins) {
  EXPECT_EQ(make(Program::kTarget).instructions, 2U);
  EXPECT_EQ(make(Program::kCaller).instructions, 1U);
  joined_ = Program::kTarget + 1;
  EXPECT_EQ(make(Program::kTarget).instructions, 1U);
  maker_.end_plain();
  EXPECT_EQ(make(Program::kTarget).instructions, 2U);
  EXPECT_GT(make(Program::kCaller).instructions, 1U);
}

TEST_F(SuperblockMakerTest, EndsWhereAnotherBeginsOnceThereIsMuchCode) {
  maker_.end_plain();
  joined_ = Program::kTarget + 1;
  EXPECT_EQ(make(Program::kTarget).instructions, 2U);
  maker_.go_on_at(2ULL << 20);
  EXPECT_EQ(make(Program::kTarget).instructions, 1U);
}

TEST_F(SuperblockMakerTest, KnowsConditionalJumps) {
  EXPECT_TRUE(maker_.is_conditional(Program::kJump));
  EXPECT_FALSE(maker_.is_conditional(Program::kStart));
  EXPECT_FALSE(maker_.is_conditional(Program::kCaller));
}

}  // namespace
}  // namespace backtrail::tracee::cache
