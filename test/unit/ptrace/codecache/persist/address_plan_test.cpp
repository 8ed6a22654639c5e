// SPDX-License-Identifier: Apache-2.0
// Programs with random addresses, and the addresses planned for them.

#include "ptrace/codecache/persist/address_plan.hpp"

#include <initializer_list>
#include <string>

#include <gtest/gtest.h>

namespace backtrail::tracee::cache {
namespace {

using Move = AddressPlan::Move;

/// A position-independent program, the vdso followed by its dynamic linker, and a stack, as mapped
/// by Linux 6.18.
constexpr const char* kProgramLines =
    "5598e7c22000-5598e7c23000 r--p 00000000 fe:00 123 /tmp/m\n"
    "5598e7c23000-5598e7c24000 r-xp 00001000 fe:00 123 /tmp/m\n"
    "5598e7c26000-5598e7c27000 rw-p 00003000 fe:00 123 /tmp/m\n"
    "5598e7c27000-5598e7c29000 rw-p 00000000 00:00 0 \n";
constexpr const char* kLinkerLines =
    "7fe4db655000-7fe4db657000 r-xp 00000000 00:00 0 [vdso]\n"
    "7fe4db657000-7fe4db658000 r--p 00000000 fe:00 77 /lib64/ld-linux-x86-64.so.2\n"
    "7fe4db658000-7fe4db67e000 r-xp 00001000 fe:00 77 /lib64/ld-linux-x86-64.so.2\n"
    "7fe4db68a000-7fe4db68c000 rw-p 00033000 fe:00 77 /lib64/ld-linux-x86-64.so.2\n";
constexpr const char* kStackLine = "7fffdd9a9000-7fffdd9ca000 rw-p 00000000 00:00 0 [stack]\n";
constexpr LoadedImage kProgram{.begin = 0x5598e7c22000};
constexpr LoadedImage kLinker{.begin = 0x7fe4db657000};
constexpr std::uint64_t kTop = 0x7ef000000000;
constexpr std::uint64_t kLinkerBytes = 0x35000;

std::vector<MapEntry> maps_of(std::initializer_list<const char*> lines) {
  std::string text;
  for (const char* line : lines) text += line;
  return parse_maps(text);
}

TEST(AddressPlan, MovesEachMappingOfProgramAndLinker) {
  const auto maps = maps_of({kProgramLines, kLinkerLines, kStackLine});
  const auto plan = plan_addresses(maps, kProgram, kLinker);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->top, kTop);
  EXPECT_EQ(kProgram.begin + plan->program_distance, 0x555555554000U);
  EXPECT_EQ(kLinker.begin + plan->linker_distance, kTop - kLinkerBytes);
  const std::vector<Move> wanted{
      {0x7fe4db657000, 0x7fe4db658000, kTop - kLinkerBytes},
      {0x7fe4db658000, 0x7fe4db67e000, kTop - kLinkerBytes + 0x1000},
      {0x7fe4db68a000, 0x7fe4db68c000, kTop - 0x2000},
      {0x5598e7c22000, 0x5598e7c23000, 0x555555554000},
      {0x5598e7c23000, 0x5598e7c24000, 0x555555555000},
      {0x5598e7c26000, 0x5598e7c27000, 0x555555558000},
      {0x5598e7c27000, 0x5598e7c29000, 0x555555559000},
  };
  EXPECT_EQ(plan->moves, wanted);
  EXPECT_TRUE(are_planned(0x555555554000, kTop - kLinkerBytes));
  EXPECT_EQ(planned_top(kTop - kLinkerBytes), kTop);
  EXPECT_EQ(planned_top(kLinker.begin), 0U);
  EXPECT_FALSE(are_planned(kProgram.begin, kTop - kLinkerBytes));
  EXPECT_FALSE(are_planned(0x555555554000, kLinker.begin));
}

TEST(AddressPlan, KeepsAlignment) {
  const auto maps = maps_of({kProgramLines, kLinkerLines, kStackLine});
  constexpr std::uint64_t kBig = 2U << 20;
  const auto plan = plan_addresses(maps, {.begin = kProgram.begin, .alignment = kBig},
                                   LoadedImage{
                                       .begin = kLinker.begin,
                                       .alignment = kBig,
                                   });
  ASSERT_TRUE(plan);
  EXPECT_EQ(kProgram.begin + plan->program_distance, 0x555555400000U);
  EXPECT_EQ(kLinker.begin + plan->linker_distance, kTop - kBig);
}

TEST(AddressPlan, LeavesProgramsThatAreLinkedForAnAddress) {
  const auto maps =
      maps_of({"00400000-00500000 r-xp 00000000 fe:00 123 /tmp/m\n", kLinkerLines, kStackLine});
  const auto plan = plan_addresses(maps, {.begin = 0x400000, .movable = false}, kLinker);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->program_distance, 0U);
  EXPECT_EQ(plan->moves.size(), 3U);
  EXPECT_TRUE(are_planned(0x400000, kTop - kLinkerBytes));
}

TEST(AddressPlan, OfStaticPrograms) {
  const auto low = plan_addresses(maps_of({kProgramLines, kStackLine}), kProgram, std::nullopt);
  ASSERT_TRUE(low);
  EXPECT_EQ(low->top, 0U);
  EXPECT_EQ(low->moves.size(), 4U);
  // A dynamic linker invoked by name.
  const auto high = plan_addresses(maps_of({kLinkerLines, kStackLine}), kLinker, std::nullopt);
  ASSERT_TRUE(high);
  EXPECT_EQ(high->top, kTop);
  EXPECT_EQ(kLinker.begin + high->program_distance, kTop - kLinkerBytes);
  EXPECT_TRUE(are_planned(kTop - kLinkerBytes, 0));
  EXPECT_FALSE(are_planned(kLinker.begin, 0));
  const auto fixed = maps_of({"00400000-00500000 r-xp 00000000 fe:00 123 /tmp/m\n", kStackLine});
  EXPECT_FALSE(plan_addresses(fixed, {.begin = 0x400000, .movable = false}, std::nullopt));
  EXPECT_TRUE(are_planned(0x400000, 0));
}

TEST(AddressPlan, HasAnotherTopWhereTheKernelChoseALowerOne) {
  constexpr const char* kOther = "71e4db657000-71e4db68c000 r-xp 00000000 fe:00 77 /lib64/ld.so\n";
  const auto plan = plan_addresses(maps_of({kProgramLines, kOther, kStackLine}), kProgram,
                                   LoadedImage{.begin = 0x71e4db657000});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->top, 0x701000000000U);
  EXPECT_TRUE(are_planned(0x555555554000, plan->moves.front().to));
  // Directly below the stack's limit there is almost no room.
  constexpr const char* kLow = "155555520000-155555555000 r-xp 00000000 fe:00 77 /lib64/ld.so\n";
  EXPECT_FALSE(plan_addresses(maps_of({kLow, kProgramLines, kStackLine}), kProgram,
                              LoadedImage{.begin = 0x155555520000}));
}

TEST(AddressPlan, NeedsRoom) {
  // The address planned for the program is in use.
  constexpr const char* kTaken = "555555558000-555555559000 rw-p 00000000 00:00 0 \n";
  EXPECT_FALSE(plan_addresses(maps_of({kTaken, kProgramLines, kLinkerLines, kStackLine}), kProgram,
                              kLinker));
  // The program itself uses it, which lies slightly off.
  constexpr const char* kNear = "555555555000-555555558000 r-xp 00000000 fe:00 123 /tmp/m\n";
  EXPECT_FALSE(plan_addresses(maps_of({kNear, kLinkerLines, kStackLine}), {.begin = 0x555555555000},
                              kLinker));
}

TEST(AddressPlan, LeavesWhatLiesThereAlready) {
  constexpr const char* kThere = "555555554000-555555558000 r-xp 00000000 fe:00 123 /tmp/m\n";
  const auto plan = plan_addresses(maps_of({kThere, kLinkerLines, kStackLine}),
                                   {.begin = 0x555555554000}, kLinker);
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->program_distance, 0U);
  EXPECT_EQ(plan->moves.size(), 3U);
  EXPECT_FALSE(plan_addresses(maps_of({kThere, kStackLine}), {.begin = 0x555555554000}, {}));
}

TEST(AddressPlan, KnowsNoOthersMappings) {
  // The images are not mapped at the given addresses.
  const auto maps = maps_of({kProgramLines, kLinkerLines, kStackLine});
  EXPECT_FALSE(plan_addresses(maps, {.begin = 0x1000}, kLinker));
  EXPECT_FALSE(plan_addresses(maps, kProgram, LoadedImage{.begin = 0x7fe4db656000}));
  EXPECT_FALSE(plan_addresses({}, kProgram, kLinker));
}

}  // namespace
}  // namespace backtrail::tracee::cache
