// SPDX-License-Identifier: Apache-2.0
#include "server/agent/agent_expression.hpp"

#include <map>

#include <gtest/gtest.h>

#include "server/rsp/hex.hpp"

namespace backtrail::server::agent {
namespace {

/// Registers and memory from tables.
class TableMachine : public AgentMachine {
 public:
  Result<std::uint64_t> read_register(std::size_t number) override {
    const auto found = registers.find(number);
    if (found == registers.end()) return fail(TraceErrc::kInvalidArgument, "table");
    return found->second;
  }
  Result<void> read_memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    for (std::size_t i = 0; i < out.size(); ++i) {
      const auto found = memory.find(address.value() + i);
      if (found == memory.end()) return fail(TraceErrc::kUnreadable, "table");
      out[i] = found->second;
    }
    return {};
  }
  void print(std::string_view text) override { printed += text; }

  std::map<std::size_t, std::uint64_t> registers;
  std::map<std::uint64_t, std::uint8_t> memory;
  std::string printed;
};

class AgentExpressionTest : public ::testing::Test {
 protected:
  /// Evaluates bytecode in hex; blanks are for the reader.
  Result<std::uint64_t> evaluate(std::string text) {
    std::erase(text, ' ');
    const auto bytes = rsp::from_hex(text);
    EXPECT_TRUE(bytes) << text;
    return AgentExpression{*bytes}.evaluate(machine);
  }
  std::uint64_t value(const std::string& text) {
    const auto result = evaluate(text);
    EXPECT_TRUE(result) << text;
    return result.value_or(0xbad);
  }
  bool malformed(const std::string& text) {
    const auto result = evaluate(text);
    return !result && result.error().is(TraceErrc::kMalformed);
  }

  TableMachine machine;
};

TEST_F(AgentExpressionTest, PushesConstantsOfEverySize) {
  EXPECT_EQ(value("22 f0 27"), 0xf0U);
  EXPECT_EQ(value("23 0102 27"), 0x0102U);
  EXPECT_EQ(value("24 01020304 27"), 0x01020304U);
  EXPECT_EQ(value("25 0102030405060708 27"), 0x0102030405060708U);
}

TEST_F(AgentExpressionTest, Calculates) {
  EXPECT_EQ(value("22 07 22 03 02 27"), 10U);
  EXPECT_EQ(value("22 03 22 07 03 27"), static_cast<std::uint64_t>(-4));
  EXPECT_EQ(value("22 07 22 03 04 27"), 21U);
  EXPECT_EQ(value("22 07 22 03 06 27"), 2U);
  EXPECT_EQ(value("22 07 22 03 08 27"), 1U);
  EXPECT_EQ(value("22 0c 22 0a 0f 27"), 8U);
  EXPECT_EQ(value("22 0c 22 0a 10 27"), 0x0eU);
  EXPECT_EQ(value("22 0c 22 0a 11 27"), 0x06U);
  EXPECT_EQ(value("22 00 12 27"), ~std::uint64_t{0});
  EXPECT_EQ(value("22 00 0e 27"), 1U);
  EXPECT_EQ(value("22 05 0e 27"), 0U);
}

TEST_F(AgentExpressionTest, DividesSigned) {
  // -7 / 2 and -7 % 2 in C.
  EXPECT_EQ(value("22 f9 16 08 22 02 05 27"), static_cast<std::uint64_t>(-3));
  EXPECT_EQ(value("22 f9 16 08 22 02 07 27"), static_cast<std::uint64_t>(-1));
}

TEST_F(AgentExpressionTest, SurvivesDivisionsThatHaveNoResult) {
  for (const char* op : {"05", "06", "07", "08"}) {
    EXPECT_TRUE(malformed(std::string{"22 07 22 00 "} + op + " 27"));
  }
  EXPECT_EQ(value("25 8000000000000000 22 ff 16 08 05 27"), 0x8000000000000000U);
  EXPECT_EQ(value("25 8000000000000000 22 ff 16 08 07 27"), 0U);
}

TEST_F(AgentExpressionTest, ShiftsByAnyCount) {
  EXPECT_EQ(value("22 01 22 04 09 27"), 16U);
  EXPECT_EQ(value("22 01 22 40 09 27"), 0U);
  EXPECT_EQ(value("22 f0 16 08 22 04 0a 27"), ~std::uint64_t{0});
  EXPECT_EQ(value("22 f0 16 08 22 ff 0a 27"), ~std::uint64_t{0});
  EXPECT_EQ(value("22 f0 22 04 0b 27"), 0x0fU);
  EXPECT_EQ(value("22 f0 22 40 0b 27"), 0U);
}

TEST_F(AgentExpressionTest, Compares) {
  EXPECT_EQ(value("22 05 22 05 13 27"), 1U);
  EXPECT_EQ(value("22 05 22 06 13 27"), 0U);
  // -1 < 1 holds signed, not unsigned.
  EXPECT_EQ(value("22 ff 16 08 22 01 14 27"), 1U);
  EXPECT_EQ(value("22 ff 16 08 22 01 15 27"), 0U);
}

TEST_F(AgentExpressionTest, Extends) {
  EXPECT_EQ(value("22 80 16 08 27"), 0xffffffffffffff80U);
  EXPECT_EQ(value("22 7f 16 08 27"), 0x7fU);
  EXPECT_EQ(value("22 80 16 40 27"), 0x80U);
  EXPECT_EQ(value("23 ff80 2a 08 27"), 0x80U);
  EXPECT_EQ(value("23 ff80 2a 40 27"), 0xff80U);
}

TEST_F(AgentExpressionTest, ReadsMemoryLittleEndian) {
  for (std::uint8_t i = 0; i < 8; ++i)
    machine.memory[0x1000U + i] = static_cast<std::uint8_t>(i + 1);
  EXPECT_EQ(value("23 1000 17 27"), 0x01U);
  EXPECT_EQ(value("23 1000 18 27"), 0x0201U);
  EXPECT_EQ(value("23 1000 19 27"), 0x04030201U);
  EXPECT_EQ(value("23 1000 1a 27"), 0x0807060504030201U);
  const auto beyond = evaluate("23 1001 1a 27");
  ASSERT_FALSE(beyond);
  EXPECT_TRUE(beyond.error().is(TraceErrc::kUnreadable));
}

TEST_F(AgentExpressionTest, ReadsRegisters) {
  machine.registers[0x10] = 0x401000;
  EXPECT_EQ(value("26 0010 27"), 0x401000U);
  EXPECT_FALSE(evaluate("26 0011 27"));
}

TEST_F(AgentExpressionTest, MovesTheStack) {
  EXPECT_EQ(value("22 05 28 02 27"), 10U);          // dup add
  EXPECT_EQ(value("22 05 22 09 29 27"), 5U);        // pop
  EXPECT_EQ(value("22 05 22 09 2b 03 27"), 4U);     // swap sub: 9 - 5
  EXPECT_EQ(value("22 05 22 09 32 01 27"), 5U);     // pick
  EXPECT_EQ(value("22 01 22 02 22 03 33 27"), 2U);  // rot: 1 2 3 => 3 1 2
  EXPECT_EQ(value("22 01 22 02 22 03 33 29 27"), 1U);
  EXPECT_EQ(value("22 01 22 02 22 03 33 29 29 27"), 3U);
}

TEST_F(AgentExpressionTest, Jumps) {
  // 0: const 1; 2: if_goto 8; 5: const 7; 7: end; 8: const 9; 10: end
  EXPECT_EQ(value("22 01 20 0008 22 07 27 22 09 27"), 9U);
  EXPECT_EQ(value("22 00 20 0008 22 07 27 22 09 27"), 7U);
  EXPECT_EQ(value("21 0006 22 07 27 22 09 27"), 9U);
}

TEST_F(AgentExpressionTest, EndsEndlessLoops) {
  EXPECT_TRUE(malformed("21 0000"));
}

TEST_F(AgentExpressionTest, BoundsTheStack) {
  EXPECT_TRUE(malformed("22 01 21 0000"));
  EXPECT_TRUE(malformed("29 27"));
  EXPECT_TRUE(malformed("02 27"));
  EXPECT_TRUE(malformed("32 05 27"));
  EXPECT_TRUE(malformed("27"));
}

TEST_F(AgentExpressionTest, StaysInsideTheBytecode) {
  EXPECT_TRUE(malformed(""));
  EXPECT_TRUE(malformed("22"));
  EXPECT_TRUE(malformed("25 01 02"));
  EXPECT_TRUE(malformed("21 ffff"));
  EXPECT_TRUE(malformed("22 01"));
  EXPECT_TRUE(malformed("34 00 ffff 00"));
  EXPECT_TRUE(malformed("34 00 0000 27"));
}

TEST_F(AgentExpressionTest, RefusesWhatItDoesNotSupport) {
  for (const char* op : {"01", "0c", "0d", "1b", "1c", "1d", "1e", "1f", "2c0000", "2d0000",
                         "2e0000", "2f", "300000", "00", "31", "35", "ff"}) {
    const auto result = evaluate(std::string{"22 01 22 01 "} + op + " 27");
    ASSERT_FALSE(result) << op;
    EXPECT_TRUE(result.error().is(TraceErrc::kUnsupported)) << op;
  }
}

TEST_F(AgentExpressionTest, Prints) {
  // The stack holds the arguments, the first on top, then channel and function: printf("%d %x
  // ", 5, 0x2a).
  const std::string format = rsp::to_hex(std::string_view{"%d %x\n\0", 7});
  std::string text = "22 2a 22 05 22 00 22 00 34 02 0007" + format + "27";
  std::erase(text, ' ');
  ASSERT_TRUE(AgentExpression{*rsp::from_hex(text)}.run(machine));
  EXPECT_EQ(machine.printed, "5 2a\n");
}

}  // namespace
}  // namespace backtrail::server::agent
