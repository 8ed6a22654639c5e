// SPDX-License-Identifier: Apache-2.0
// Variables by the debug information of real programs, in frames that a test makes up.
#include <fstream>

#include <gtest/gtest.h>

#include "decoder/symbols/symbols.hpp"
#include "fake_frame.hpp"

namespace backtrail::decoder {
namespace {

constexpr std::uint64_t kBase = 0x400000;
constexpr std::uint64_t kStack = 0x7ff000;

class Variables : public ::testing::Test {
 protected:
  void open(const std::string& program) {
    LoadedModule module;
    module.path = module.found = std::string{BT_INFERIOR_DIR} + "/" + program;
    for (std::uint64_t page = 0; page < 8; ++page) {
      const std::uint64_t start = kBase + page * 0x1000;
      module.pieces.push_back({TraceeAddr{start}, TraceeAddr{start + 0x1000}, page * 0x1000});
    }
    symbols = make_elf_symbols({module});
  }
  /// Returns the entry of a function.
  TraceeAddr entry(const std::string& name) {
    for (std::uint64_t at = kBase; at < kBase + 0x8000; ++at) {
      const FunctionRef function = symbols->at(TraceeAddr{at});
      if (function.known() && symbols->function_name(function.id) == name) return function.entry;
    }
    ADD_FAILURE() << "no function " << name;
    return {};
  }
  std::optional<std::string> argument(TraceeAddr first, const std::string& name,
                                      FrameState* later = nullptr) {
    const auto all = symbols->variables().arguments(first, frame, later);
    if (!all) return "no arguments";
    for (const Variable& one : *all) {
      if (one.name == name) return one.value;
    }
    return "no such argument";
  }

  std::unique_ptr<Symbols> symbols;
  test::FakeFrame frame;
};

TEST_F(Variables, ArgumentsOfOptimisedCodeAreInTheirRegisters) {
  open("called_O2");
  const TraceeAddr first = entry("ignore");
  frame.set(FrameState::kRsp, kStack);
  frame.set_bits(5, 0xffffffff00000007, 0xffffffff);  // The upper half of rdi is of no account.
  frame.set_bits(4, 3, 0x7fffffff);
  EXPECT_EQ(argument(first, "one"), "7");
  EXPECT_EQ(argument(first, "two"), std::nullopt);
  EXPECT_EQ(argument(first, "three"), std::nullopt);
}

TEST_F(Variables, ArgumentsOfOtherCodeAreInMemoryAfterThePrologue) {
  open("called_O0");
  const TraceeAddr first = entry("last");
  const auto after = symbols->variables().after_prologue(first);
  ASSERT_TRUE(after);
  ASSERT_GT(*after, first);
  frame.set(FrameState::kRsp, kStack);
  frame.set(5, 99);
  // Bytes on the stack from before the function has stored its arguments are of no account.
  for (std::uint64_t at = kStack - 0x80; at < kStack; ++at) frame.memory_bytes[at] = 1;
  EXPECT_EQ(argument(first, "count"), std::nullopt);
  test::FakeFrame later;
  later.set(FrameState::kRbp, kStack - 8);
  later.set(FrameState::kRsp, kStack - 8);
  for (std::uint64_t at = kStack - 0x80; at < kStack; ++at) later.memory_bytes[at] = 2;
  EXPECT_EQ(argument(first, "count", &later), std::to_string(0x02020202));
  EXPECT_EQ(argument(first, "place", &later), "0x202020202020202");
  later.registers.erase(FrameState::kRbp);
  EXPECT_EQ(argument(first, "count", &later), std::nullopt);
}

TEST_F(Variables, OnlyAFunctionsFirstInstructionHasArguments) {
  open("called_O0");
  EXPECT_EQ(argument(entry("last") + 1, "count"), "no arguments");
  EXPECT_FALSE(symbols->variables().after_prologue(entry("last") + 1));
}

TEST_F(Variables, ResultsAreInTheRegisterOfTheirType) {
  open("called_O0");
  test::FakeFrame end;
  end.set_bits(FrameState::kRax, 0xfffffffe, 0xffffffff);
  const auto mix = symbols->variables().result(entry("mix"), end);
  ASSERT_TRUE(mix);
  EXPECT_EQ(mix->value, "4294967294");
  const auto add = symbols->variables().result(entry("add"), end);
  ASSERT_TRUE(add);
  EXPECT_EQ(add->value, std::nullopt);  // 64 bits, of which 32 are known.
  EXPECT_FALSE(symbols->variables().result(entry("ignore"), end));
}

TEST_F(Variables, CallersHaveTheRegistersThatTheirCalleesKeep) {
  open("called_O0");
  const TraceeAddr first = entry("mix");
  frame.set(FrameState::kRsp, kStack);
  frame.set(12, 33);
  frame.set(1, 11);
  frame.set(FrameState::kRbp, 66);
  EXPECT_EQ(symbols->variables().caller(first, frame), nullptr);  // No return address.
  frame.store(kStack, entry("main").value() + 20, 8);
  const auto caller = symbols->variables().caller(first, frame);
  ASSERT_NE(caller, nullptr);
  EXPECT_EQ(caller->reg(FrameState::kPc).value, entry("main").value() + 20);
  EXPECT_EQ(caller->reg(FrameState::kRsp).value, kStack + 8);
  EXPECT_EQ(caller->reg(FrameState::kRbp).value, 66U);
  EXPECT_EQ(caller->reg(12).value, 33U);
  EXPECT_EQ(caller->reg(1).mask, 0U);
}

TEST_F(Variables, WithoutDebugInformationThereIsAReason) {
  open("valued_stripped");
  const TraceeAddr main = entry("main");
  EXPECT_TRUE(symbols->variables().at(main, frame).empty());
  EXPECT_EQ(symbols->variables().problem(main), "valued_stripped has no debug information");
}

}  // namespace
}  // namespace backtrail::decoder
