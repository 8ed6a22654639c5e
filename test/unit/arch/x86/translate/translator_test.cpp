// SPDX-License-Identifier: Apache-2.0
#include "arch/x86/translate/translator.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <elf.h>
#include <gtest/gtest.h>

#include "arch/base/file_bytes.hpp"
#include "arch/insn.hpp"
#include "arch/x86/translate/layout.hpp"
#include "test/support/effort.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr TraceeAddr kCode{0x5000'0000};
constexpr TraceeAddr kTable{0x7000'0000};
constexpr TraceeAddr kMiss{0x4fff'0000};

/// A program of bytes at an address.
class Program {
 public:
  Program(std::uint64_t base, std::vector<std::uint8_t> bytes)
      : base_{base}, bytes_{std::move(bytes)} {}

  [[nodiscard]] CodeSource source() const {
    return {.read = [this](TraceeAddr at, std::span<std::uint8_t> out) -> std::size_t {
              const std::uint64_t offset = at - base_;
              if (at < base_ || offset >= bytes_.size()) return 0;
              const std::size_t count = std::min<std::size_t>(out.size(), bytes_.size() - offset);
              std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(offset), count, out.begin());
              return count;
            },
            .stop_before = [this](TraceeAddr at) { return stop_ && *stop_ == at; }};
  }
  void stop_before(std::uint64_t at) { stop_ = TraceeAddr{at}; }
  [[nodiscard]] TraceeAddr base() const { return base_; }
  [[nodiscard]] std::size_t size() const { return bytes_.size(); }

  [[nodiscard]] Superblock translated(const InlineSystemCalls* calls = nullptr) const {
    const auto result = translate(source(), base_, options(calls));
    if (const auto* block = std::get_if<Superblock>(&result)) return *block;
    ADD_FAILURE() << to_string(std::get<UntranslatableReason>(result));
    return {};
  }
  [[nodiscard]] static TranslateOptions options(const InlineSystemCalls* calls = nullptr) {
    return {.address = kCode, .table = kTable, .miss = kMiss, .inline_system_calls = calls};
  }

 private:
  TraceeAddr base_;
  std::vector<std::uint8_t> bytes_;
  std::optional<TraceeAddr> stop_;
};

/// Returns the number of bytes that decode as instructions from the beginning, up to the constants
/// after the code.
std::size_t decodable_bytes(const std::vector<std::uint8_t>& code) {
  std::size_t at = 0;
  while (at < code.size()) {
    const auto facts = decode_insn(Isa::kAmd64, kCode + at, std::span{code}.subspan(at));
    if (!facts.known()) break;
    at += facts.length;
  }
  return at;
}

TEST(Translator, EndsAtAReturnWhoseTargetTheNextEntryTells) {
  const Program program{0x1000, {0x31, 0xc0, 0xc3}};  // xor eax, eax; ret
  const Superblock block = program.translated();
  ASSERT_EQ(block.exits.size(), 1U);
  EXPECT_EQ(block.exits[0].kind, ExitKind::kIndirect);
  EXPECT_EQ(block.exits[0].from, TraceeAddr{0x1002});
  EXPECT_EQ(block.instructions, 2U);
  EXPECT_EQ(decodable_bytes(block.code), block.code.size());
}

TEST(Translator, LogsTheTakenSideOfAConditionalJump) {
  const Program program{0x1000, {0x74, 0x10, 0xc3}};  // je 0x1012; ret
  const Superblock block = program.translated();
  ASSERT_EQ(block.exits.size(), 2U);
  const Exit& taken = block.exits[1];
  EXPECT_EQ(taken.kind, ExitKind::kDirect);
  EXPECT_EQ(taken.from, TraceeAddr{0x1000});
  EXPECT_EQ(taken.to, TraceeAddr{0x1012});
  EXPECT_NE(taken.link_offset, 0U);
  EXPECT_EQ(taken.passed, 0U);
}

TEST(Translator, FollowsDirectJumpsAndRemembersThem) {
  const Program program{0x1000, {0xeb, 0x01, 0xcc, 0xc3}};  // jmp 0x1003; int3; ret
  const Superblock block = program.translated();
  ASSERT_EQ(block.branches.size(), 1U);
  EXPECT_EQ(block.branches[0], Branch(TraceeAddr{0x1000}, TraceeAddr{0x1003}));
  ASSERT_EQ(block.exits.size(), 1U);
  EXPECT_EQ(block.exits[0].passed, 1U);
}

TEST(Translator, LoopsLogEveryTurn) {
  const Program program{0x1000, {0xeb, 0xfe}};  // jmp $
  const Superblock block = program.translated();
  ASSERT_EQ(block.exits.size(), 1U);
  EXPECT_EQ(block.exits[0].to, TraceeAddr{0x1000});
}

TEST(Translator, LinksLieWithinOneCacheLine) {
  for (std::uint64_t shift = 0; shift < kCacheLineBytes; ++shift) {
    const Program program{0x1000, {0x74, 0x10, 0x75, 0x12, 0xeb, 0xfa}};
    TranslateOptions options = Program::options();
    options.address = kCode + shift;
    const auto result = translate(program.source(), program.base(), options);
    const auto& block = std::get<Superblock>(result);
    for (const Exit& exit : block.exits) {
      const std::uint64_t first = (block.address + exit.link_offset).value();
      EXPECT_EQ(first / kCacheLineBytes, (first + 3) / kCacheLineBytes);
    }
  }
}

TEST(Translator, LeavesWhatItDoesNotKnowToTheCpu) {
  const std::map<UntranslatableReason, std::vector<std::uint8_t>> cases{
      {UntranslatableReason::kInterrupt, {0xcc}},
      {UntranslatableReason::kSystemCall, {0x0f, 0x05}},
      {UntranslatableReason::kFarTransfer, {0x48, 0xcb}},
      {UntranslatableReason::kSegment, {0x65, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0}},
      {UntranslatableReason::kFlags, {0x9d}},
      {UntranslatableReason::kTransaction, {0xc7, 0xf8, 0, 0, 0, 0}},
      {UntranslatableReason::kAddressSize, {0x66, 0xe9, 0, 0, 0, 0}},
      {UntranslatableReason::kUndecodable, {0x06}},
      {UntranslatableReason::kUnreadable, {}},
  };
  for (const auto& [reason, bytes] : cases) {
    const Program program{0x1000, bytes};
    const auto result = translate(program.source(), program.base(), Program::options());
    ASSERT_TRUE(std::holds_alternative<UntranslatableReason>(result)) << to_string(reason);
    EXPECT_EQ(std::get<UntranslatableReason>(result), reason) << to_string(reason);
  }
}

TEST(Translator, EndsBeforeABreakpoint) {
  Program program{0x1000, {0x90, 0x90, 0x90, 0xc3}};
  program.stop_before(0x1002);
  const Superblock block = program.translated();
  ASSERT_EQ(block.exits.size(), 1U);
  EXPECT_EQ(block.exits[0].kind, ExitKind::kContinue);
  EXPECT_EQ(block.exits[0].to, TraceeAddr{0x1002});
}

TEST(Translator, EndsWhereItFallsThroughToAnotherSuperblock) {
  // 0x1000: nop; jmp 0x1004; nop; 0x1004: nop; nop; ret
  const Program program{0x1000, {0x90, 0xeb, 0x01, 0x90, 0x90, 0x90, 0xc3}};
  CodeSource source = program.source();
  source.joined_at = [](TraceeAddr at) { return at != TraceeAddr{0x1001}; };
  const auto result = translate(source, program.base(), Program::options());
  const auto& block = std::get<Superblock>(result);
  ASSERT_EQ(block.exits.size(), 1U);
  // The superblock ends after the jump's target, not at it.
  EXPECT_EQ(block.exits[0].kind, ExitKind::kContinue);
  EXPECT_EQ(block.exits[0].to, TraceeAddr{0x1005});
  EXPECT_EQ(block.branches.size(), 1U);
}

TEST(Translator, LeavesCallsAndWhatIsKnownToOthersToSaveMemory) {
  TranslateOptions saving = Program::options();
  saving.saves_memory = true;
  const auto exit_of = [&](const Program& program, bool known) {
    CodeSource source = program.source();
    source.joined_at = [=](TraceeAddr) { return known; };
    const auto result = translate(source, program.base(), saving);
    const auto& block = std::get<Superblock>(result);
    return block.exits.size() == 1 ? std::optional{block.exits[0]} : std::nullopt;
  };
  const Program jumps{0x1000, {0xeb, 0x01, 0xcc, 0xc3}};                    // jmp 0x1003; int3; ret
  const Program calls{0x1000, {0xe8, 0x01, 0x00, 0x00, 0x00, 0xcc, 0xc3}};  // call 0x1006; ...
  const auto jump = exit_of(jumps, true);
  ASSERT_TRUE(jump);
  EXPECT_EQ(jump->kind, ExitKind::kDirect);
  EXPECT_EQ(jump->to, TraceeAddr{0x1003});
  const auto followed = exit_of(jumps, false);
  ASSERT_TRUE(followed);
  EXPECT_EQ(followed->kind, ExitKind::kIndirect);
  const auto call = exit_of(calls, false);
  ASSERT_TRUE(call);
  EXPECT_EQ(call->kind, ExitKind::kDirect);
  EXPECT_EQ(call->to, TraceeAddr{0x1006});
}

TEST(Translator, DoesNotFollowJumpsThatLeadFarAway) {
  const Program program{0x1000, {0xe9, 0, 0, 0, 0x50, 0xc3}};  // jmp 0x50001005
  const Superblock block = program.translated();
  ASSERT_EQ(block.exits.size(), 1U);
  EXPECT_EQ(block.exits[0].kind, ExitKind::kDirect);
  EXPECT_EQ(block.exits[0].to, TraceeAddr{0x5000'1005});
}

TEST(Translator, MakesOnlyKnownSystemCallsItself) {
  // mov eax, 39; syscall; ret
  const Program program{0x1000, {0xb8, 39, 0, 0, 0, 0x0f, 0x05, 0xc3}};
  InlineSystemCalls calls{};
  EXPECT_EQ(program.translated(&calls).exits[0].kind, ExitKind::kUntranslatable);
  calls[39] = CallCheck::kAlways;
  const Superblock block = program.translated(&calls);
  // Code after the call may change while it waits.
  EXPECT_EQ(block.exits[0].kind, ExitKind::kContinue);
  EXPECT_EQ(block.exits[0].to, TraceeAddr{0x1007});
  // Directly after the call the program's rcx is its pc, and its r11 is in r11.
  const auto behind =
      std::find_if(block.pc_map.begin(), block.pc_map.end(),
                   [](const PcMapEntry& map_entry) { return (map_entry.flags & kRcxIsPc) != 0; });
  ASSERT_NE(behind, block.pc_map.end());
  EXPECT_EQ(behind->pc, TraceeAddr{0x1007});
  EXPECT_NE(behind->flags & kR11Live, 0);
}

TEST(Translator, LooksAtArgumentsBeforeItMakesSomeSystemCalls) {
  // mov eax, 9; syscall; ret
  const Program program{0x1000, {0xb8, 9, 0, 0, 0, 0x0f, 0x05, 0xc3}};
  for (const CallCheck check :
       {CallCheck::kMap, CallCheck::kProtect, CallCheck::kRange, CallCheck::kAction,
        CallCheck::kThreadBase, CallCheck::kSignalMask, CallCheck::kRseq}) {
    InlineSystemCalls calls{};
    calls[9] = check;
    const Superblock block = program.translated(&calls);
    ASSERT_EQ(block.exits.size(), 3U);
    EXPECT_EQ(block.exits[0].kind, ExitKind::kUntranslatable);
    EXPECT_EQ(block.exits[0].reason, UntranslatableReason::kSystemCall);
    EXPECT_EQ(block.exits[0].to, TraceeAddr{0x1005});
    EXPECT_EQ(block.exits[0].executed, 1U);
    EXPECT_EQ(block.exits[1].kind, ExitKind::kContinue);
    EXPECT_EQ(block.exits[1].executed, 2U);
    EXPECT_EQ(block.exits[2].kind, ExitKind::kUntranslatable);
    EXPECT_EQ(block.exits[2].reason, UntranslatableReason::kFailedCall);
    EXPECT_EQ(block.exits[2].to, TraceeAddr{0x1007});
    EXPECT_EQ(block.exits[2].executed, 2U);
    EXPECT_EQ(decodable_bytes(block.code), block.code.size());
    // The program's rcx is saved in a slot meanwhile.
    EXPECT_TRUE(
        std::any_of(block.pc_map.begin(), block.pc_map.end(), [](const PcMapEntry& map_entry) {
          return map_entry.pc == TraceeAddr{0x1005} && (map_entry.flags & kRcxInSlot) != 0;
        }));
  }
}

TEST(Translator, SmallLoopsTurnWithinTheirSuperblock) {
  // dec eax; jne 0x1000; ret
  const Program program{0x1000, {0xff, 0xc8, 0x75, 0xfc, 0xc3}};
  const Superblock block = program.translated();
  ASSERT_GE(block.branches.size(), 2U);
  for (const Branch& branch : block.branches) {
    EXPECT_EQ(branch, Branch(TraceeAddr{0x1002}, TraceeAddr{0x1000}));
  }
  // The return, the end of every copy, and the last copy's jump back.
  ASSERT_EQ(block.exits.size(), block.branches.size() + 2);
  for (std::size_t i = 0; i < block.branches.size(); ++i) {
    const Exit& exit = block.exits[i + 1];
    EXPECT_EQ(exit.kind, ExitKind::kContinue);
    EXPECT_EQ(exit.to, TraceeAddr{0x1004});
    EXPECT_EQ(exit.passed, i);
    EXPECT_EQ(exit.executed, 2 * (i + 1));
  }
  EXPECT_EQ(block.exits.back().kind, ExitKind::kDirect);
  EXPECT_EQ(block.exits.back().to, TraceeAddr{0x1000});
  EXPECT_EQ(block.exits.back().passed, block.branches.size());
}

TEST(Translator, GoesOnBehindACallThatReturns) {
  // call 0x1006; nop; ret -- 0x1007: ret
  const Program program{0x1000, {0xe8, 2, 0, 0, 0, 0x90, 0xc3, 0xc3}};
  const Superblock block = program.translated();
  ASSERT_EQ(block.branches.size(), 2U);
  EXPECT_EQ(block.branches[0], Branch(TraceeAddr{0x1000}, TraceeAddr{0x1007}));
  EXPECT_EQ(block.branches[1], Branch(TraceeAddr{0x1007}, TraceeAddr{0x1005}));
  ASSERT_EQ(block.exits.size(), 2U);
  // The return at the end, and the inner one for when it goes elsewhere.
  EXPECT_EQ(block.exits[0].from, TraceeAddr{0x1006});
  EXPECT_EQ(block.exits[0].passed, 2U);
  EXPECT_EQ(block.exits[0].executed, 4U);
  EXPECT_EQ(block.exits[1].kind, ExitKind::kIndirect);
  EXPECT_EQ(block.exits[1].from, TraceeAddr{0x1007});
  EXPECT_EQ(block.exits[1].passed, 1U);
  EXPECT_EQ(block.exits[1].executed, 2U);
  EXPECT_EQ(decodable_bytes(block.code), block.code.size());
}

TEST(Translator, RowsUndoAReturnUntilItIsLogged) {
  const Program program{0x1000, {0xc2, 0x10, 0x00}};  // ret 16
  const Superblock block = program.translated();
  EXPECT_EQ(block.pc_map.front().stack_add, 0);
  bool undone = false;
  for (const PcMapEntry& map_entry : block.pc_map) {
    if ((map_entry.flags & kCommitted) != 0) {
      EXPECT_EQ(map_entry.stack_add, 0);
      EXPECT_NE(map_entry.flags & kTargetInR10, 0);
    } else {
      EXPECT_EQ(map_entry.pc, TraceeAddr{0x1000});
      undone |= map_entry.stack_add == -24;
    }
  }
  EXPECT_TRUE(undone);
}

TEST(Translator, ReachesFarDataThroughAScratchRegister) {
  // cmp dword [rip+0x10], 5 ; vmovdqu ymm0, [rip+0] ; vaddps zmm1, zmm0, [rip+0] ; ret
  const std::vector<std::uint8_t> bytes{0x83, 0x3d, 0x10, 0, 0, 0, 5,    0xc5, 0xfe,
                                        0x6f, 0x05, 0,    0, 0, 0, 0x62, 0xf1, 0x7c,
                                        0x48, 0x58, 0x0d, 0, 0, 0, 0,    0xc3};
  const Program program{0x7fff'0000'0000, bytes};
  const Superblock block = program.translated();
  EXPECT_EQ(block.instructions, 4U);
  EXPECT_EQ(decodable_bytes(block.code), block.code.size());
}

/// Returns the executable segments of a 64-bit ELF file as programs.
std::vector<Program> text_of(const std::string& path, std::uint64_t base) {
  const auto raw = file_bytes(path).value_or(std::vector<std::uint8_t>{});
  std::vector<Program> programs;
  if (raw.size() < sizeof(Elf64_Ehdr)) return programs;
  Elf64_Ehdr header;
  std::memcpy(&header, raw.data(), sizeof header);
  for (unsigned i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment;
    std::memcpy(&segment, raw.data() + header.e_phoff + i * sizeof segment, sizeof segment);
    if (segment.p_type != PT_LOAD || (segment.p_flags & PF_X) == 0) continue;
    const auto* begin = raw.data() + segment.p_offset;
    programs.emplace_back(base + segment.p_vaddr,
                          std::vector<std::uint8_t>(begin, begin + segment.p_filesz));
  }
  return programs;
}

/// Checks that exits are numbered in order, pc map entries are sorted, and every byte decodes.
void check_block(const Superblock& block) {
  ASSERT_FALSE(block.exits.empty()) << block.start.value();
  for (std::size_t i = 0; i < block.exits.size(); ++i) ASSERT_EQ(block.exits[i].id, i);
  ASSERT_TRUE(
      std::is_sorted(block.pc_map.begin(), block.pc_map.end(),
                     [](const PcMapEntry& a, const PcMapEntry& b) { return a.offset < b.offset; }));
  ASSERT_EQ(block.pc_map.front().offset, 0U);
  const auto constants = static_cast<std::size_t>(
      std::count_if(block.returns.begin(), block.returns.end(),
                    [](TraceeAddr at) { return at.value() > 0x7fff'ffff; }));
  ASSERT_GE(decodable_bytes(block.code) + 8 * constants, block.code.size()) << block.start.value();
}

class TranslatorOnLibrary : public testing::TestWithParam<std::uint64_t> {};

TEST_P(TranslatorOnLibrary, TranslatesFromEveryInstructionOfLibc) {
  const auto programs = text_of("/lib/x86_64-linux-gnu/libc.so.6", GetParam());
  if (programs.empty()) GTEST_SKIP() << "no libc.so.6 at its usual place";
  constexpr std::size_t kStride = test::kSanitized ? 61 : 13;
  std::size_t translated = 0;
  std::size_t left_alone = 0;
  for (const Program& program : programs) {
    const CodeSource source = program.source();
    std::size_t count = 0;
    for (std::uint64_t offset = 0; offset < program.size();) {
      std::array<std::uint8_t, kMaxInsnBytes> bytes{};
      const std::size_t available = source.read(program.base() + offset, bytes);
      const SourceInsn insn =
          decode_source(program.base() + offset, std::span{bytes}.first(available));
      offset += std::max<std::uint64_t>(insn.length, 1);
      if (insn.length == 0 || ++count % kStride != 0) continue;
      const auto result = translate(source, insn.pc, Program::options());
      if (const auto* block = std::get_if<Superblock>(&result)) {
        ++translated;
        check_block(*block);
        if (HasFatalFailure()) return;
      } else {
        ++left_alone;
      }
    }
  }
  EXPECT_GT(translated, 1000U);
  EXPECT_LT(left_alone * 100, translated);
}

INSTANTIATE_TEST_SUITE_P(NearAndFar, TranslatorOnLibrary,
                         testing::Values(0x4000'0000U, 0x7fff'0000'0000U));

TEST(LandingPad, CanBeChangedWhileThreadsRun) {
  for (const std::uint64_t start : {0x1000UL, 0x7fff'1234'5678UL}) {
    for (const IbEntryTest test : {IbEntryTest::kJrcxz, IbEntryTest::kLoop}) {
      const Program program{start, {0x90, 0xc3}};  // nop; ret
      TranslateOptions options = Program::options();
      options.address = kCode + kIbEntryAlignment - kIbEntryOffset;
      options.conflict = kMiss + 0x40;
      options.ib_entry_test = test;
      const auto result = translate(program.source(), TraceeAddr{start}, options);
      const auto& block = std::get<Superblock>(result);
      EXPECT_EQ(decodable_bytes(block.code), block.code.size());
      // A jump to the next entry in the chain; its rel32 ends where this entry begins.
      EXPECT_EQ(block.code[0], 0xe9);
      std::uint32_t distance = 0;
      std::memcpy(&distance, &block.code[1], sizeof distance);
      EXPECT_EQ(options.address + kIbEntryOffset + distance, *options.conflict + (1ULL << 32U));
      // The entry's first instruction is longer than the bytes that disable the entry, which jump
      // to the chain.
      const std::span<const std::uint8_t> ib_entry = std::span{block.code}.subspan(kIbEntryOffset);
      const SourceInsn first = decode_source(options.address + kIbEntryOffset, ib_entry.first(15));
      EXPECT_GE(first.length, kClosedIbEntry.size());
      const SourceInsn closed = decode_source(options.address + kIbEntryOffset, kClosedIbEntry);
      EXPECT_EQ(closed.kind, InsnClass::kJump);
      EXPECT_EQ(closed.target, options.address);
      // Up to the superblock's code nothing has run, and the target is in r10.
      EXPECT_GT(block.after_entry, kIbEntryOffset);
      // A disabled entry can be enabled again.
      const auto beginning = std::span{block.code}.subspan(kIbEntryOffset, kClosedIbEntry.size());
      EXPECT_TRUE(std::ranges::equal(beginning, ib_entry_beginning(block.after_entry)));
      for (const PcMapEntry& map_entry : block.pc_map) {
        const unsigned flags = map_entry.flags;
        EXPECT_TRUE(map_entry.offset >= block.after_entry || (flags & kTargetInR10) != 0);
        EXPECT_TRUE(map_entry.offset > block.after_entry || (flags & kRcxInSlot) != 0);
      }
    }
  }
}

TEST(Translator, WhoIsStoppedInACheckIsAtTheHead) {
  const Program program{0x1000, {0xb8, 0, 0, 0, 0, 0xc3}};  // mov eax, 0; ret
  for (const bool lands : {false, true}) {
    SCOPED_TRACE(lands);
    TranslateOptions options = Program::options();
    options.checked = true;
    if (lands) options.conflict = kMiss;
    const auto result = translate(program.source(), TraceeAddr{0x1000}, options);
    const auto& block = std::get<Superblock>(result);
    // From there on r10 and rcx belong to the check, and nothing has run.
    const PcMapEntry& check = block.entry_at(block.after_entry);
    EXPECT_EQ(check.pc, TraceeAddr{0x1000});
    EXPECT_EQ(check.flags & (kTargetInR10 | kCommitted | kR10Live), 0);
    EXPECT_EQ((check.flags & kRcxInSlot) != 0, lands);
    EXPECT_NE(block.pc_map.at(lands ? 1 : 2).flags & kRcxInSlot, 0);
  }
}

TEST(Translator, TakesRcxFromItsSlotWhenItIsNeeded) {
  // mov eax, ecx; ret / mov ecx, 1; ret / xor ecx, ecx; ret / add ecx, 1; ret / nop; ret
  const std::vector<std::pair<std::vector<std::uint8_t>, bool>> cases{
      {{0x89, 0xc8, 0xc3}, true},  {{0xb9, 1, 0, 0, 0, 0xc3}, false},
      {{0x31, 0xc9, 0xc3}, false}, {{0x83, 0xc1, 0x01, 0xc3}, true},
      {{0xb1, 0x01, 0xc3}, true},  // mov cl, 1
      {{0x90, 0xc3}, false}};
  const std::vector<std::uint8_t> load{0x65, 0x48, 0x8b, 0x0c, 0x25};  // mov rcx, gs:[...]
  for (const auto& [bytes, needed] : cases) {
    const Program program{0x1000, bytes};
    TranslateOptions options = Program::options();
    options.conflict = kMiss;
    const auto result = translate(program.source(), TraceeAddr{0x1000}, options);
    const auto& code = std::get<Superblock>(result).code;
    const bool loaded =
        std::search(code.begin(), code.end(), load.begin(), load.end()) != code.end();
    EXPECT_EQ(loaded, needed) << int{bytes[0]};
  }
}

TEST(Translator, FollowsABranchThatIsLikely) {
  // test eax, eax; jne 0x1006; ret; nop -- 0x1006: jmp rax
  const Program program{0x1000, {0x85, 0xc0, 0x75, 0x02, 0xc3, 0x90, 0xff, 0xe0, 0x90, 0xc3}};
  CodeSource source = program.source();
  source.likely_target = [](TraceeAddr at) -> std::optional<TraceeAddr> {
    if (at == TraceeAddr{0x1002}) return TraceeAddr{0x1006};
    if (at == TraceeAddr{0x1006}) return TraceeAddr{0x1008};
    return std::nullopt;
  };
  const auto result = translate(source, TraceeAddr{0x1000}, Program::options());
  const auto& block = std::get<Superblock>(result);
  ASSERT_EQ(block.branches.size(), 2U);
  EXPECT_EQ(block.branches[0], Branch(TraceeAddr{0x1002}, TraceeAddr{0x1006}));
  EXPECT_EQ(block.branches[1], Branch(TraceeAddr{0x1006}, TraceeAddr{0x1008}));
  ASSERT_EQ(block.exits.size(), 3U);
  EXPECT_EQ(block.exits[0].from, TraceeAddr{0x1009});  // The return at the end.
  EXPECT_EQ(block.exits[1].kind, ExitKind::kContinue);
  EXPECT_EQ(block.exits[1].to, TraceeAddr{0x1004});
  EXPECT_EQ(block.exits[1].passed, 0U);
  EXPECT_EQ(block.exits[2].kind, ExitKind::kIndirect);
  EXPECT_EQ(block.exits[2].from, TraceeAddr{0x1006});
  EXPECT_EQ(block.exits[2].passed, 1U);
  EXPECT_EQ(decodable_bytes(block.code), block.code.size());
}

}  // namespace
}  // namespace backtrail::arch::x86::translate
