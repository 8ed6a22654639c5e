// SPDX-License-Identifier: Apache-2.0
#include "server/agent/agent_printf.hpp"

#include <gtest/gtest.h>

namespace backtrail::server::agent {
namespace {

/// Memory with "hello" at 0x100 and nothing elsewhere.
class HelloMachine : public AgentMachine {
 public:
  Result<std::uint64_t> read_register(std::size_t /*number*/) override {
    return fail(TraceErrc::kUnsupported, "hello");
  }
  Result<void> read_memory(TraceeAddr address, std::span<std::uint8_t> out) override {
    constexpr std::string_view kText{"hello\0", 6};
    for (std::size_t i = 0; i < out.size(); ++i) {
      const std::uint64_t offset = address.value() - 0x100 + i;
      if (offset >= kText.size()) return fail(TraceErrc::kUnreadable, "hello");
      out[i] = static_cast<std::uint8_t>(kText[offset]);
    }
    return {};
  }
  void print(std::string_view /*text*/) override {}
};

Result<std::string> format(std::string_view text, std::vector<std::uint64_t> arguments = {}) {
  HelloMachine machine;
  return agent_printf(text, arguments, machine);
}

TEST(AgentPrintf, CopiesPlainText) {
  EXPECT_EQ(format("100%% plain").value(), "100% plain");
}

TEST(AgentPrintf, ConvertsIntegersByTheirWidth) {
  EXPECT_EQ(format("%d", {0xffffffff}).value(), "-1");
  EXPECT_EQ(format("%u", {0xffffffff}).value(), "4294967295");
  EXPECT_EQ(format("%ld", {0xffffffff}).value(), "4294967295");
  EXPECT_EQ(format("%lld", {~std::uint64_t{0}}).value(), "-1");
  EXPECT_EQ(format("%ld", {std::uint64_t{1} << 63}).value(), "-9223372036854775808");
  EXPECT_EQ(format("%hhd", {0x1ff}).value(), "-1");
  EXPECT_EQ(format("%hu", {0x1ffff}).value(), "65535");
  EXPECT_EQ(format("%o %x %X %#x", {8, 0xab, 0xab, 0xab}).value(), "10 ab AB 0xab");
  EXPECT_EQ(format("%p", {0x1234}).value(), "0x1234");
}

TEST(AgentPrintf, PadsAsPrintfDoes) {
  EXPECT_EQ(format("[%5d]", {42}).value(), "[   42]");
  EXPECT_EQ(format("[%-5d]", {42}).value(), "[42   ]");
  EXPECT_EQ(format("[%05d]", {static_cast<std::uint64_t>(-42)}).value(), "[-0042]");
  EXPECT_EQ(format("[%.4x]", {0x2a}).value(), "[002a]");
  EXPECT_EQ(format("[%+d]", {1}).value(), "[+1]");
}

TEST(AgentPrintf, ReadsStringsAndCharacters) {
  EXPECT_EQ(format("%s, %c!", {0x100, 'w'}).value(), "hello, w!");
  EXPECT_EQ(format("%.2s", {0x100}).value(), "he");
  EXPECT_FALSE(format("%s", {0x900}));
}

TEST(AgentPrintf, RefusesWhatItCannotDo) {
  for (const char* bad : {"%d", "%", "%l", "%5", "%f", "%n", "%ls", "%*d", "%Lf"}) {
    const bool needs_argument = std::string_view{bad} != "%d";
    EXPECT_FALSE(
        format(bad, needs_argument ? std::vector<std::uint64_t>{1} : std::vector<std::uint64_t>{}))
        << bad;
  }
}

TEST(AgentPrintf, ResolvesEscapesOfTheFormat) {
  EXPECT_EQ(format(R"(a\tb\n\\\"\101\0)").value(), std::string("a\tb\n\\\"A\0", 8));
  EXPECT_EQ(format(R"(\%d)", {1}).has_value(), false);
  EXPECT_FALSE(format("\\"));
  EXPECT_FALSE(format(R"(\q)"));
}

TEST(AgentPrintf, BoundsWidths) {
  EXPECT_LE(format("%99999d", {1}).value().size(), 1024U);
  EXPECT_FALSE(format("%99999999999999999999d", {1}));
}

}  // namespace
}  // namespace backtrail::server::agent
