// SPDX-License-Identifier: Apache-2.0
#include "ptrace/codecache/translation/code_cache.hpp"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>

#include "test/unit/ptrace/codecache/translation/fake_code_memory.hpp"
#include "test/unit/ptrace/codecache/translation/fake_program.hpp"
#include "test/unit/ptrace/codecache/translation/loaded_pieces.hpp"

namespace backtrail::tracee::cache {
namespace {

using Program = FakeProgram;
using translate::ExitKind;
using translate::UntranslatableReason;

/// A process with a code cache.
struct Fake {
  Fake() { code.limit(FakeCodeMemory::kBytes); }

  TraceeAddr translation(TraceeAddr start) {
    const auto made = code.translation(start);
    code.make_all_next();
    return std::get<TraceeAddr>(made);
  }
  TraceeAddr ib_entry(TraceeAddr start) { return std::get<TraceeAddr>(code.ib_entry(start)); }
  /// The newest exit of this kind to an address; nullopt if there is none.
  [[nodiscard]] std::optional<std::uint32_t> exit_to(TraceeAddr to, ExitKind kind) const {
    std::optional<std::uint32_t> found;
    for (std::uint32_t id = 0; const auto exit = code.exit(id); ++id) {
      if (exit->to == to && exit->kind == kind) found = id;
    }
    return found;
  }
  /// The code offset of an exit's link.
  std::uint64_t link_of(std::uint32_t exit_id) {
    std::vector<ExitPlace> places;
    code.keep({}, CodeCache::Keeping::kMeanwhile, [&](const PersistentPieces& pieces) {
      for (const auto& piece : pieces.places) {
        places.insert(places.end(), piece.begin(), piece.end());
      }
    });
    return places.at(exit_id).link();
  }
  /// Where a link leads to.
  [[nodiscard]] TraceeAddr target_of(std::uint64_t link) const {
    const CodeLinks links{memory.host_code(), memory.code()};
    return links.address_of(links.target_of(link));
  }
  [[nodiscard]] bool is_dispatch_stub(TraceeAddr address) const {
    const auto place = code.locate(address);
    return place && place->kind == CodePlace::Kind::kMiss;
  }
  /// Where the table sends indirect branches.
  [[nodiscard]] TraceeAddr entry_of(TraceeAddr start) {
    return memory.entries()[memory.entries().index(start)];
  }
  std::shared_ptr<const PersistentCode> save(const PersistentModules& modules,
                                             CodeCache::Keeping when = CodeCache::Keeping::kAtEnd) {
    std::shared_ptr<const PersistentCode> saved;
    code.keep(modules, when,
              [&](const PersistentPieces& pieces) { saved = loaded_pieces(pieces, false); });
    return saved;
  }

  FakeCodeMemory memory;
  Program program;
  translate::InlineSystemCalls calls{};
  CodeCache code{memory, program.source(), program.facts(), calls};
};

constexpr CodeModule kModule{
    .begin = Program::kBegin, .end = Program::kBegin + Program::kBytes, .identity = 1};

class CodeCacheTest : public testing::Test {
 protected:
  Fake process_;
  CodeCache& code_ = process_.code;
  const AheadFacts facts_{.pointer_at = [](TraceeAddr) { return std::nullopt; },
                          .is_function = [](TraceeAddr) { return false; }};
};

TEST_F(CodeCacheTest, FindsWhatItHasMade) {
  const TraceeAddr made = process_.translation(Program::kStart);
  const std::size_t blocks = code_.blocks();
  EXPECT_EQ(process_.translation(Program::kStart), made);
  EXPECT_EQ(code_.blocks(), blocks);
  const auto place = code_.locate(made);
  ASSERT_TRUE(place);
  EXPECT_EQ(place->kind, CodePlace::Kind::kBlock);
  EXPECT_EQ(place->map_entry.pc, Program::kStart);
  EXPECT_EQ(place->logged.start, Program::kStart);
  EXPECT_TRUE(process_.is_dispatch_stub(process_.memory.code()));
  EXPECT_FALSE(code_.locate(process_.memory.code() + code_.bytes_used() + 16));
  EXPECT_FALSE(code_.locate(Program::kStart));
}

TEST_F(CodeCacheTest, MakesSomeOfWhatComesNext) {
  (void)process_.translation(Program::kStart);
  const std::size_t blocks = code_.blocks();
  EXPECT_GE(blocks, 2U);
  (void)process_.translation(Program::kTarget);
  EXPECT_EQ(code_.blocks(), blocks);
}

TEST_F(CodeCacheTest, MakesOneSuperblockAtATime) {
  EXPECT_FALSE(code_.make_next());
  (void)code_.translation(Program::kCaller);
  EXPECT_EQ(code_.blocks(), 1U);
  const auto link = process_.link_of(*process_.exit_to(Program::kTarget, ExitKind::kDirect));
  EXPECT_TRUE(process_.is_dispatch_stub(process_.target_of(link)));
  ASSERT_TRUE(code_.make_next());
  EXPECT_EQ(code_.blocks(), 2U);
  EXPECT_EQ(process_.target_of(link), process_.translation(Program::kTarget));
  code_.clear();
  EXPECT_FALSE(code_.make_next()) << "what came next is forgotten with the rest";
}

TEST_F(CodeCacheTest, ALongRunGetsABigPageAndAWideTable) {
  const TraceeAddr entry = process_.ib_entry(Program::kStart);
  EXPECT_FALSE(process_.memory.settled_first());
  code_.expect_long_run();
  EXPECT_TRUE(process_.memory.settled_first());
  EXPECT_EQ(process_.memory.entries().size(), translate::kTableEntries);
  EXPECT_EQ(process_.ib_entry(Program::kStart), entry);
}

TEST_F(CodeCacheTest, TranslatesFunctionsAheadWithWhatTheyLeadTo) {
  const std::vector<TraceeAddr> starts{Program::kStart, Program::kCaller};
  const std::size_t made = code_.translate_ahead(starts, facts_, 1U << 20U);
  EXPECT_EQ(made, code_.blocks());
  // The functions, for indirect branches; what they jump to and call; where the call returns.
  EXPECT_NE(process_.entry_of(Program::kCaller), process_.memory.code());
  (void)process_.ib_entry(Program::kStart);
  (void)process_.ib_entry(Program::kCaller);
  (void)process_.ib_entry(Program::kCaller + 5);
  (void)process_.translation(Program::kTarget);
  EXPECT_EQ(code_.blocks(), made);
  EXPECT_EQ(code_.translate_ahead(starts, facts_, 1U << 20U), 0U);
}

TEST_F(CodeCacheTest, TranslatesNoMoreAheadThanItMay) {
  const std::vector<TraceeAddr> starts{Program::kStart};
  EXPECT_EQ(code_.translate_ahead(starts, facts_, code_.bytes_used()), 0U);
}

TEST_F(CodeCacheTest, TranslatesAheadThroughPointersAndAddresses) {
  // lea rax, [kTarget]; jmp [rip]
  process_.program.put(0x40, {0x48, 0x8d, 0x05, 0xc9, 0xff, 0xff, 0xff, 0xff, 0x25, 0, 0, 0, 0});
  const AheadFacts facts{.pointer_at = [](TraceeAddr at) -> std::optional<TraceeAddr> {
                           EXPECT_EQ(at, Program::kBegin + 0x4d);
                           return Program::kStart;
                         },
                         .is_function = [](TraceeAddr at) { return at == Program::kTarget; }};
  const std::vector<TraceeAddr> starts{Program::kBegin + 0x40};
  (void)code_.translate_ahead(starts, facts, 1U << 20U);
  EXPECT_NE(process_.entry_of(Program::kTarget), process_.memory.code());
  EXPECT_NE(process_.entry_of(Program::kStart), process_.memory.code());
}

TEST_F(CodeCacheTest, MakesWhatPointersPointTo) {
  // jmp [rip]: the pointer follows.
  process_.program.put(0x40, {0xff, 0x25, 0, 0, 0, 0});
  process_.program.point(Program::kBegin + 0x46, Program::kTarget);
  (void)process_.translation(Program::kBegin + 0x40);
  EXPECT_NE(process_.entry_of(Program::kTarget), process_.memory.code());
}

TEST_F(CodeCacheTest, ExitsLeadToTheTranslationOfTheirTarget) {
  (void)process_.translation(Program::kStart);
  const auto link = process_.link_of(*process_.exit_to(Program::kTarget, ExitKind::kDirect));
  EXPECT_EQ(process_.target_of(link), process_.translation(Program::kTarget));
  code_.drop(Program::kTarget, Program::kTarget + 1);
  EXPECT_EQ(code_.drops(), 1U);
  EXPECT_TRUE(process_.is_dispatch_stub(process_.target_of(link)));
  const TraceeAddr newer = process_.translation(Program::kTarget);
  EXPECT_EQ(process_.target_of(link), newer);
}

TEST_F(CodeCacheTest, IndirectBranchesFindTheirTarget) {
  EXPECT_EQ(process_.entry_of(Program::kTarget), process_.memory.code());
  const TraceeAddr ib_entry = process_.ib_entry(Program::kTarget);
  EXPECT_NE(ib_entry, process_.translation(Program::kTarget));
  EXPECT_EQ(process_.ib_entry(Program::kTarget), ib_entry);
  const auto place = code_.locate(process_.entry_of(Program::kTarget));
  ASSERT_TRUE(place);
  EXPECT_EQ(place->logged.start, Program::kTarget);
  code_.drop(Program::kTarget, Program::kTarget + 1);
  EXPECT_EQ(process_.entry_of(Program::kTarget), process_.memory.code());
  EXPECT_NE(process_.ib_entry(Program::kTarget), ib_entry);
}

TEST_F(CodeCacheTest, SaysWhyThereIsNone) {
  process_.program.leave_to_cpu(Program::kStart);
  EXPECT_EQ(std::get<UntranslatableReason>(code_.translation(Program::kStart)),
            UntranslatableReason::kBreakpoint);
  EXPECT_EQ(std::get<UntranslatableReason>(code_.ib_entry(Program::kStart)),
            UntranslatableReason::kBreakpoint);
  code_.limit(code_.bytes_used());
  EXPECT_EQ(std::get<UntranslatableReason>(code_.translation(Program::kTarget)),
            UntranslatableReason::kNone);
}

TEST_F(CodeCacheTest, SplitsAreNotRunOver) {
  (void)process_.translation(Program::kTarget);
  EXPECT_FALSE(process_.exit_to(Program::kTarget + 1, ExitKind::kContinue));
  code_.split_at(Program::kTarget + 1);
  (void)process_.translation(Program::kTarget);
  EXPECT_TRUE(process_.exit_to(Program::kTarget + 1, ExitKind::kContinue));
  // A debugger's translations are for nobody else.
  EXPECT_EQ(process_.save({.present = {kModule}, .gone = {}}), nullptr);
}

TEST_F(CodeCacheTest, ReplacesASuperblockWhoseCodeHasChanged) {
  process_.program.set_may_change(true);
  (void)process_.translation(Program::kStart);
  const TraceeAddr old = process_.translation(Program::kTarget);
  const auto link = process_.link_of(*process_.exit_to(Program::kTarget, ExitKind::kDirect));
  EXPECT_EQ(process_.target_of(link), old);
  const auto stale = process_.exit_to(Program::kTarget, ExitKind::kStale);
  ASSERT_TRUE(stale);
  const TraceeAddr newer = std::get<TraceeAddr>(code_.renew(*stale));
  EXPECT_NE(newer, old);
  EXPECT_EQ(process_.target_of(link), newer);
  EXPECT_EQ(process_.translation(Program::kTarget), newer);
  EXPECT_EQ(code_.renewed(), 1U);
  EXPECT_EQ(code_.blocks_of_files(), 0U);
}

TEST_F(CodeCacheTest, FollowsTheWayThatSuperblocksGo) {
  const TraceeAddr old = process_.translation(Program::kStart);
  const std::uint32_t taken = *process_.exit_to(Program::kTarget, ExitKind::kDirect);
  ExitProfile profile;
  const std::vector<std::uint32_t> log(1000, taken);
  profile.sample(log, [](auto, auto) { return std::nullopt; });
  EXPECT_TRUE(code_.retranslate_by_profile(profile));
  EXPECT_EQ(code_.retranslated(), 1U);
  const TraceeAddr newer = process_.translation(Program::kStart);
  EXPECT_NE(newer, old);
  const auto place = code_.locate(newer);
  ASSERT_TRUE(place);
  ASSERT_EQ(place->logged.branches.size(), 1U);
  EXPECT_EQ(place->logged.branch(0), (decoder::TakenBranch{Program::kJump, Program::kTarget}));
  // There is no news now.
  EXPECT_FALSE(code_.retranslate_by_profile(profile));
}

TEST_F(CodeCacheTest, ForgetsAllAtOnce) {
  const TraceeAddr first = process_.translation(Program::kStart);
  (void)process_.ib_entry(Program::kTarget);
  code_.clear();
  EXPECT_EQ(code_.blocks(), 0U);
  EXPECT_EQ(code_.cleared(), 1U);
  EXPECT_EQ(process_.entry_of(Program::kTarget), process_.memory.code());
  EXPECT_FALSE(code_.locate(first));
  EXPECT_EQ(process_.translation(Program::kStart), first);
}

TEST_F(CodeCacheTest, AnotherProcessUsesWhatWasSaved) {
  const TraceeAddr translation = process_.translation(Program::kStart);
  const TraceeAddr ib_entry = process_.ib_entry(Program::kTarget);
  const std::uint32_t exit = *process_.exit_to(Program::kTarget, ExitKind::kDirect);
  const auto link = process_.link_of(exit);
  const auto saved = process_.save({.present = {kModule}, .gone = {}});
  ASSERT_NE(saved, nullptr);

  Fake other;
  other.code.load(saved);
  EXPECT_EQ(other.code.loaded(), saved);
  EXPECT_EQ(other.code.exit(exit)->to, Program::kTarget);
  EXPECT_EQ(other.entry_of(Program::kTarget), other.memory.code());
  other.code.activate(kModule.begin, kModule.end);
  EXPECT_EQ(other.translation(Program::kStart), translation);
  EXPECT_EQ(other.ib_entry(Program::kTarget), ib_entry);
  EXPECT_NE(other.entry_of(Program::kTarget), other.memory.code());
  EXPECT_EQ(other.target_of(link), other.translation(Program::kTarget));
  EXPECT_EQ(other.code.blocks(), 0U);
  EXPECT_EQ(other.code.locate(translation)->map_entry.pc, Program::kStart);

  other.code.drop(Program::kTarget, Program::kTarget + 1);
  EXPECT_EQ(other.code.drops(), 1U);
  EXPECT_TRUE(other.is_dispatch_stub(other.target_of(link)));
  EXPECT_EQ(other.entry_of(Program::kTarget), other.memory.code());
  EXPECT_NE(other.translation(Program::kStart), translation);
  EXPECT_GT(other.code.blocks(), 0U);
}

TEST_F(CodeCacheTest, NewSuperblocksLeadToLoadedOnes) {
  const TraceeAddr target = process_.translation(Program::kTarget);
  const auto saved = process_.save({.present = {kModule}, .gone = {}});
  ASSERT_NE(saved, nullptr);

  Fake other;
  other.code.load(saved);
  other.code.activate(kModule.begin, kModule.end);
  (void)other.translation(Program::kStart);
  EXPECT_GT(other.code.blocks(), 0U);
  const auto exit = other.exit_to(Program::kTarget, ExitKind::kDirect);
  ASSERT_TRUE(exit);
  EXPECT_EQ(other.target_of(other.link_of(*exit)), target);
}

/// Returns how many values are recorded at each place of a superblock.
std::vector<std::size_t> recorded_in(const CodeCache& code, TraceeAddr translation) {
  std::vector<std::size_t> recorded;
  const std::uint32_t number = code.locate(translation)->number;
  for (auto place = code.locate(translation); place && place->number == number;
       place = code.locate(translation + recorded.size())) {
    recorded.push_back(place->values);
  }
  return recorded;
}

TEST_F(CodeCacheTest, AnotherProcessKnowsTheValuesThatSavedTranslationsRecord) {
  // mov [rdi], rax; jz kTarget; mov [rsi], rax; ret
  process_.program.put(0, {0x48, 0x89, 0x07, 0x74, 0x0b, 0x48, 0x89, 0x06, 0xc3});
  code_.record_values(ValueDepth::kMost);
  const TraceeAddr translation = process_.translation(Program::kStart);
  const auto recorded = recorded_in(code_, translation);
  EXPECT_EQ(recorded.front(), 0U);
  EXPECT_EQ(*std::max_element(recorded.begin(), recorded.end()), 2U);
  const std::uint32_t block = code_.locate(translation)->number;
  const std::uint32_t exit = *process_.exit_to(Program::kTarget, ExitKind::kDirect);
  const auto saved = process_.save({.present = {kModule}, .gone = {}});
  ASSERT_NE(saved, nullptr);

  Fake other;
  other.code.record_values(ValueDepth::kMost);
  other.code.load(saved);
  ASSERT_EQ(other.code.loaded(), saved);
  other.code.activate(kModule.begin, kModule.end);
  EXPECT_EQ(other.translation(Program::kStart), translation);
  EXPECT_EQ(recorded_in(other.code, translation), recorded);
  const decoder::ValuePoints& points = other.code.exits()->values();
  EXPECT_EQ(points.before_exit(exit), 1);
  const auto values = points.of_block(block);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0].kind, 7);
  EXPECT_EQ(values[1].kind, 6);
  EXPECT_EQ(values[1].pc, 5);

  // New superblocks continue the loaded ones, and are saved with them.
  other.program.put(0x40, {0x48, 0x89, 0x03, 0xc3});  // mov [rbx], rax; ret
  const TraceeAddr more = other.translation(Program::kBegin + 0x40);
  const auto recorded_of_more = recorded_in(other.code, more);
  EXPECT_EQ(*std::max_element(recorded_of_more.begin(), recorded_of_more.end()), 1U);
  EXPECT_EQ(points.of_block(block).size(), 2U);
  const std::uint32_t new_block = other.code.locate(more)->number;
  const auto again = other.save({.present = {kModule}, .gone = {}});
  ASSERT_NE(again, nullptr);
  Fake third;
  third.code.record_values(ValueDepth::kMost);
  third.code.load(again);
  third.code.activate(kModule.begin, kModule.end);
  EXPECT_EQ(recorded_in(third.code, translation), recorded);
  EXPECT_EQ(recorded_in(third.code, more), recorded_of_more);
  EXPECT_EQ(third.code.exits()->values().of_block(new_block)[0].kind, 3);
}

TEST_F(CodeCacheTest, TranslationsThatRecordValuesAreForThoseWhoWantThem) {
  (void)process_.translation(Program::kStart);
  const auto without = process_.save({.present = {kModule}, .gone = {}});
  Fake recording;
  recording.code.record_values(ValueDepth::kMost);
  (void)recording.translation(Program::kStart);
  const auto with = recording.save({.present = {kModule}, .gone = {}});
  ASSERT_TRUE(with && without);
  EXPECT_TRUE(without->parts().values.empty() && without->parts().first_values.empty());
  for (const bool records : {false, true}) {
    Fake other;
    if (records) other.code.record_values(ValueDepth::kMost);
    other.code.load(records ? without : with);
    EXPECT_EQ(other.code.loaded(), nullptr);
    other.code.load(records ? with : without);
    EXPECT_NE(other.code.loaded(), nullptr);
  }
}

TEST_F(CodeCacheTest, LoadedCodeIsRetranslatedLikeAnyOther) {
  const TraceeAddr translation = process_.translation(Program::kStart);
  const std::uint32_t taken = *process_.exit_to(Program::kTarget, ExitKind::kDirect);
  const auto saved = process_.save({.present = {kModule}, .gone = {}});
  ASSERT_NE(saved, nullptr);
  Fake other;
  other.code.load(saved);
  other.code.activate(kModule.begin, kModule.end);
  EXPECT_EQ(other.translation(Program::kStart), translation);
  ExitProfile profile;
  profile.sample(std::vector<std::uint32_t>(1000, taken), [](auto, auto) { return std::nullopt; });
  EXPECT_TRUE(other.code.retranslate_by_profile(profile));
  EXPECT_NE(other.translation(Program::kStart), translation);
  EXPECT_EQ(other.code.blocks(), 1U);
}

/// Returns true if the memory begins with the code that it was left with. `restores`: once the
/// places that were changed are restored.
bool holds_what_was_left(FakeCodeMemory& memory, bool restores) {
  const LeftCode& left = memory.left();
  const auto there = memory.host_code().first(left.code.size());
  std::vector<std::uint8_t> code{there.begin(), there.end()};
  for (const std::uint32_t at : left.changed) {
    const auto saved = left.code.subspan(at, LeftCode::kChangedBytes);
    if (restores) std::copy(saved.begin(), saved.end(), code.begin() + at);
  }
  return std::equal(code.begin(), code.end(), left.code.begin(), left.code.end());
}

TEST_F(CodeCacheTest, LeavesItsCodeToTheNextProcess) {
  (void)process_.translation(Program::kStart);
  (void)process_.ib_entry(Program::kTarget);
  const std::uint32_t taken = *process_.exit_to(Program::kTarget, ExitKind::kDirect);
  const auto saved = process_.save({.present = {kModule}, .gone = {}});
  ASSERT_NE(saved, nullptr);
  code_.leave(saved);
  EXPECT_EQ(process_.memory.left().owner, saved);
  EXPECT_TRUE(process_.memory.left().changed.empty());
  EXPECT_TRUE(holds_what_was_left(process_.memory, false));

  Fake other;
  other.code.load(saved);
  other.code.activate(kModule.begin, kModule.end);
  ExitProfile profile;
  profile.sample(std::vector<std::uint32_t>(1000, taken), [](auto, auto) { return std::nullopt; });
  EXPECT_TRUE(other.code.retranslate_by_profile(profile));
  other.code.drop(Program::kTarget, Program::kTarget + 1);
  other.code.leave(nullptr);
  EXPECT_EQ(other.memory.left().owner, saved);
  EXPECT_FALSE(holds_what_was_left(other.memory, false));
  EXPECT_TRUE(holds_what_was_left(other.memory, true));
}

TEST_F(CodeCacheTest, LeavesNothingThatIsNotAsItWasSaved) {
  (void)process_.translation(Program::kStart);
  code_.leave(nullptr);
  EXPECT_TRUE(process_.memory.left().code.empty());
  const auto saved = process_.save({.present = {kModule}, .gone = {}});
  code_.leave(nullptr);  // writing it failed
  EXPECT_TRUE(process_.memory.left().code.empty());

  Fake cleared;
  cleared.code.load(saved);
  cleared.code.clear();
  cleared.code.leave(nullptr);
  EXPECT_TRUE(cleared.memory.left().code.empty());
}

TEST_F(CodeCacheTest, ARetiredModuleIsSavedUnlessItIsForgotten) {
  (void)process_.translation(Program::kStart);
  code_.unload(kModule.begin, kModule.end);
  EXPECT_GT(code_.drops(), 0U);
  const PersistentModules modules{.present = {}, .gone = {kModule}};
  auto saved = process_.save(modules, CodeCache::Keeping::kMeanwhile);
  ASSERT_NE(saved, nullptr);
  EXPECT_TRUE(saved->translation(Program::kStart));
  code_.forget_unloaded(kModule.begin, kModule.end);
  saved = process_.save(modules, CodeCache::Keeping::kMeanwhile);
  ASSERT_NE(saved, nullptr);
  EXPECT_FALSE(saved->translation(Program::kStart));
}

}  // namespace
}  // namespace backtrail::tracee::cache
