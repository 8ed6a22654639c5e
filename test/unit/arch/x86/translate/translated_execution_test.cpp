// SPDX-License-Identifier: Apache-2.0
// Compares translated code with native code: registers, flags, vectors, the stack with its red
// zone, and memory. BACKTRAIL_CODE_SEED sets the seed of the first program, to repeat a run.

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <ostream>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "test/support/effort.hpp"
#include "test/unit/arch/x86/translate/compared_stops.hpp"
#include "test/unit/arch/x86/translate/random_code.hpp"
#include "test/unit/arch/x86/translate/translated_run.hpp"

namespace backtrail::arch::x86::translate {
namespace {

constexpr unsigned kPrograms = test::cases(4000);
/// Chance would decide whether enough of fewer programs come to their ends.
constexpr unsigned kSteppedPrograms = test::kSanitized ? 25 : 60;
constexpr std::size_t kProgramBytes = 64UL * 1024;
constexpr std::size_t kStackBytes = 4096;
constexpr std::size_t kRsp = 4;
/// CF, PF, AF, ZF, SF, OF.
constexpr std::uint64_t kFlags = 0x8d5;
constexpr std::uint64_t kFixedFlags = 0x202;

struct Place {
  const char* name;
  bool low;  ///< Near the translations, so that RIP-relative operands reach.
  TranslatedRun::Shape shape;
};

void PrintTo(const Place& place, std::ostream* out) {
  *out << place.name;
}

/// The checks before these calls differ.
const InlineSystemCalls& harmless_calls() {
  static const InlineSystemCalls calls = [] {
    InlineSystemCalls out{};
    out.at(kHarmlessCalls[0]) = CallCheck::kAlways;
    out.at(kHarmlessCalls[1]) = CallCheck::kAction;
    out.at(kHarmlessCalls[2]) = CallCheck::kLimit;
    out.at(kHarmlessCalls[3]) = CallCheck::kRange;
    out.at(kHarmlessCalls[4]) = CallCheck::kAlways;
    return out;
  }();
  return calls;
}

/// Returns what the data and then the stack hold before a run.
const std::array<std::uint8_t, RandomCode::kDataBytes + kStackBytes>& first_bytes() {
  static const auto bytes = [] {
    std::array<std::uint8_t, RandomCode::kDataBytes + kStackBytes> out{};
    std::minstd_rand random{7};
    std::generate(out.begin(), out.end(), [&] { return static_cast<std::uint8_t>(random()); });
    return out;
  }();
  return bytes;
}

class TranslatedExecution : public testing::TestWithParam<Place> {
 protected:
  void SetUp() override {
    const bool pext = GetParam().shape.table_index == TableIndex::kMasked;
    if (pext && __builtin_cpu_supports("bmi2") == 0) GTEST_SKIP() << "this CPU has no PEXT";
  }
  void make(unsigned seed) {
    random_.seed(seed);
    const bool makes_calls = GetParam().shape.system_calls != nullptr;
    code_ = RandomCode{seed, makes_calls}.make(2 + seed % 12);
    ASSERT_LT(code_.size() + kFarJumpBytes, static_cast<std::size_t>(RandomCode::kDataOffset));
    std::memcpy(program_.bytes().data(), code_.data(), code_.size());
    write_far_jump(program_.bytes().subspan(code_.size()),
                   std::bit_cast<std::uintptr_t>(&bt_test_leave));
    for (std::uint64_t& value : before_.general) value = random_value();
    for (auto& vector : before_.vectors) vector = {random_value(), random_value()};
    before_.general[kRsp] = stack_.address().value() + kStackBytes / 2;
    before_.flags = (random_() & kFlags) | kFixedFlags;
  }
  /// Often returns a value at which flags change.
  std::uint64_t random_value() {
    constexpr std::array<std::uint64_t, 6> kSpecial{
        0, 1, ~std::uint64_t{0}, 0x8000'0000, 0x7fff'ffff, 0x8000'0000'0000'0000};
    const std::uint64_t kind = random_() % 12;
    return kind < kSpecial.size() ? kSpecial.at(kind) : random_();
  }
  void reset_memory() const {
    const auto& bytes = first_bytes();
    const auto data = program_.bytes().subspan(RandomCode::kDataOffset, RandomCode::kDataBytes);
    std::memcpy(data.data(), bytes.data(), data.size());
    std::memcpy(stack_.bytes().data(), bytes.data() + data.size(), kStackBytes);
  }
  [[nodiscard]] std::vector<std::uint8_t> memory() const {
    const auto data = program_.bytes().subspan(RandomCode::kDataOffset, RandomCode::kDataBytes);
    std::vector<std::uint8_t> out{data.begin(), data.end()};
    out.insert(out.end(), stack_.bytes().begin(), stack_.bytes().end());
    return out;
  }
  /// Returns a source that follows some of the branches taken in the last run.
  [[nodiscard]] CodeSource source_that_follows(std::map<TraceeAddr, TraceeAddr> taken) {
    std::erase_if(taken, [this](const auto&) { return random_() % 4 == 0; });
    CodeSource follows = source();
    follows.likely_target = [taken = std::move(taken)](TraceeAddr at) {
      const auto found = taken.find(at);
      return found != taken.end() ? std::optional{found->second} : std::nullopt;
    };
    return follows;
  }
  [[nodiscard]] CodeSource source() const {
    return {.read = [this](TraceeAddr at, std::span<std::uint8_t> out) -> std::size_t {
              const std::uint64_t offset = at - program_.address();
              if (offset >= code_.size()) return 0;
              const auto rest = std::span{code_}.subspan(offset);
              const std::size_t count = std::min(out.size(), rest.size());
              std::copy_n(rest.begin(), count, out.begin());
              return count;
            },
            .stop_before = [this](TraceeAddr at) { return at == end(); },
            .joined_at = [](TraceeAddr at) { return joins_at(at); }};
  }
  /// Stands for places where other superblocks begin.
  static bool joins_at(TraceeAddr at) {
    return GetParam().shape.saves_memory && at.value() % 16 == 0;
  }
  /// Returns the least number of programs out of ten that must reach their end; others make calls
  /// that are untranslatable.
  static unsigned most() { return GetParam().shape.system_calls == nullptr ? 9 : 5; }
  [[nodiscard]] TraceeAddr end() const { return program_.address() + code_.size(); }

  Pages program_{kProgramBytes, GetParam().low};
  Pages stack_{kStackBytes, false};
  std::mt19937_64 random_;
  std::vector<std::uint8_t> code_;
  MachineState before_;
};

std::string differences(const MachineState& translated, const MachineState& native) {
  std::string out;
  for (std::size_t i = 0; i < native.general.size(); ++i) {
    if (translated.general[i] != native.general[i]) out += " r" + std::to_string(i);
    if (translated.vectors[i] != native.vectors[i]) out += " xmm" + std::to_string(i);
  }
  if (translated.flags != native.flags) out += " flags";
  return out;
}

unsigned first_seed() {
  const char* given = std::getenv("BACKTRAIL_CODE_SEED");
  return given == nullptr ? 0U : static_cast<unsigned>(std::strtoul(given, nullptr, 10));
}

TEST_P(TranslatedExecution, LeavesWhatTheCpuAloneLeaves) {
  const unsigned first = first_seed();
  TranslatedRun translated;
  unsigned compared = 0;
  for (unsigned seed = first; seed < first + kPrograms; ++seed) {
    SCOPED_TRACE(testing::Message() << "BACKTRAIL_CODE_SEED=" << seed);
    make(seed);
    if (HasFatalFailure()) return;
    reset_memory();
    const MachineState expected = TranslatedRun::run_natively(program_.address(), before_);
    const auto expected_memory = memory();
    reset_memory();
    const auto found =
        translated.run(source(), program_.address(), end(), before_, GetParam().shape);
    ASSERT_FALSE(HasFailure());
    if (!found) continue;
    ++compared;
    ASSERT_EQ(differences(*found, expected), "");
    ASSERT_EQ(memory(), expected_memory);
    reset_memory();
    const auto again = translated.run(source_that_follows(translated.taken()), program_.address(),
                                      end(), before_, GetParam().shape);
    ASSERT_TRUE(again);
    ASSERT_EQ(differences(*again, expected), "");
    ASSERT_EQ(memory(), expected_memory);
  }
  EXPECT_GT(translated.superblocks(), kPrograms);
  EXPECT_GT(compared, kPrograms * most() / 10);
}

TEST_P(TranslatedExecution, IsInAStateOfTheProgramsWhereverItIsStopped) {
  const unsigned first = first_seed();
  TranslatedRun translated;
  std::uint64_t stops = 0;
  unsigned ended = 0;
  for (unsigned seed = first; seed < first + kSteppedPrograms; ++seed) {
    SCOPED_TRACE(testing::Message() << "BACKTRAIL_CODE_SEED=" << seed);
    make(seed);
    if (HasFatalFailure()) return;
    reset_memory();
    ComparedStops compared{
        {.source = source(),
         .begin = program_.address(),
         .end = end(),
         .before = before_,
         .data = program_.bytes().subspan(RandomCode::kDataOffset, RandomCode::kDataBytes),
         .stack = stack_.bytes()}};
    reset_memory();
    ASSERT_EQ(compared.differences(translated, source(), GetParam().shape), "");
    ended += compared.ended() ? 1U : 0U;
    reset_memory();
    const CodeSource follows = source_that_follows(translated.taken());
    ASSERT_EQ(compared.differences(translated, follows, GetParam().shape), "");
    ASSERT_FALSE(HasFailure());
    stops += compared.stops();
  }
  EXPECT_GT(stops, 100 * kSteppedPrograms);
  EXPECT_GT(ended, kSteppedPrograms * most() / 10);
}

INSTANTIATE_TEST_SUITE_P(
    Places, TranslatedExecution,
    testing::Values(
        Place{"Near", true, {}}, Place{"Far", false, {}},
        Place{"NearInSmallPieces", true, {.max_instructions = 2}},
        Place{"FarInSmallPieces", false, {.max_instructions = 2}},
        Place{"NearLanding", true, {.lands = true}},
        Place{"MaskedLanding", true, {.lands = true, .table_index = TableIndex::kMasked}},
        Place{"FarLanding", false, {.lands = true}},
        Place{"EntryByJrcxz", false, {.lands = true, .ib_entry_test = IbEntryTest::kJrcxz}},
        Place{"CheckedLanding", true, {.checked = true, .lands = true}},
        Place{"Checked", true, {.checked = true}},
        Place{"SavingMemory", true, {.lands = true, .saves_memory = true}},
        Place{"MakingCalls", true, {.system_calls = &harmless_calls(), .lands = true}},
        Place{"FarMakingCalls", false, {.system_calls = &harmless_calls()}},
        Place{"CheckedMakingCalls",
              true,
              {.checked = true, .system_calls = &harmless_calls(), .lands = true}},
        Place{"RecordingValues", true, {.lands = true, .records_values = true}},
        Place{"FarRecordingValues", false, {.records_values = true}},
        Place{"CheckedRecordingValues", true, {.checked = true, .records_values = true}},
        Place{"RecordingOldBytes",
              true,
              {.lands = true, .records_values = true, .records_old_bytes = true}},
        Place{"FarRecordingOldBytes", false, {.records_values = true, .records_old_bytes = true}},
        Place{"CheckedRecordingOldBytes",
              true,
              {.checked = true, .records_values = true, .records_old_bytes = true}},
        Place{"RecordingOldBytesInSmallPieces",
              true,
              {.max_instructions = 2,
               .lands = true,
               .records_values = true,
               .records_old_bytes = true}},
        Place{"RecordingValuesOfCalls",
              true,
              {.system_calls = &harmless_calls(), .lands = true, .records_values = true}},
        Place{"RecordingOldBytesOfCalls",
              true,
              {.system_calls = &harmless_calls(),
               .lands = true,
               .records_values = true,
               .records_old_bytes = true}}),
    [](const auto& test) { return test.param.name; });

}  // namespace
}  // namespace backtrail::arch::x86::translate
