// SPDX-License-Identifier: Apache-2.0
// Registers and memory that a live program's past shows are those that were there: a client steps
// forward, keeps what it sees, goes back and compares.

#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "test/integration/elf_symbols.hpp"
#include "test/integration/rsp_client.hpp"
#include "test/integration/server_process.hpp"
#include "test/support/effort.hpp"

namespace backtrail::test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using ::testing::StartsWith;

/// Returns the packet's text with its repeats expanded, without the `$`.
std::string expanded(std::string_view frame) {
  constexpr int kRepeatBase = 29;
  std::string out;
  for (std::size_t i = 1; i < frame.size(); ++i) {
    if (frame[i] != '*' || i + 1 == frame.size() || out.empty()) {
      out += frame[i];
      continue;
    }
    out.append(static_cast<std::size_t>(frame[++i] - kRepeatBase), out.back());
  }
  return out;
}

/// Registers in the order of `g`: 16 general ones, then rip.
constexpr std::size_t kRegisterDigits = 16;
constexpr std::size_t kRsp = 7;
constexpr std::size_t kRip = 16;
constexpr std::size_t kGeneral = 16;
constexpr std::size_t kWords = 12;  // of the stack that are compared

std::string register_of(const std::string& all, std::size_t number) {
  return all.substr(number * kRegisterDigits, kRegisterDigits);
}

std::uint64_t number_of(const std::string& little_endian) {
  std::uint64_t value = 0;
  for (std::size_t i = kRegisterDigits; i >= 2; i -= 2) {
    value = value << 8 | std::strtoull(little_endian.substr(i - 2, 2).c_str(), nullptr, 16);
  }
  return value;
}

/// The program before one instruction.
struct Moment {
  std::string registers;
  std::vector<std::string> stack;  ///< 8 bytes each, from rsp on.
};

/// Numbers of what was compared.
struct Yield {
  std::size_t known = 0;
  std::size_t all = 0;
};

class Session {
 public:
  /// @param values  How much of the program's values is recorded: "free", "most" or "all".
  Session(const std::string& program, const std::string& source, const std::string& values)
      : server_{{"--once", "--from-start", "--source", source, "--values", values, ":0",
                 std::string{BT_INFERIOR_DIR} + "/" + program},
                {BT_SERVER, "serve"}},
        client_{connect(server_)} {
    ask("qSupported:swbreak+;hwbreak+");
  }

  std::string ask(std::string_view packet) {
    std::string answer = expanded(client_.ask(packet));
    // Texts for the user come before a stop reply.
    while (answer.starts_with("O") && answer != "OK") answer = expanded(client_.read_frame());
    return answer;
  }

 private:
  Server server_;
  RspClient client_;
};

class Traveller : public Session {
 public:
  explicit Traveller(const std::string& program, const std::string& values = "free")
      : Session{program, "cache", values} {
    EXPECT_THAT(ask("c"), StartsWith("T05")) << "at the trap where the judged part begins";
  }
  Moment now() {
    Moment moment{.registers = ask("g"), .stack = {}};
    const std::string rsp = register_of(moment.registers, kRsp);
    for (std::size_t i = 0; i < kWords; ++i) {
      const bool known = rsp.find('x') == std::string::npos;
      moment.stack.push_back(known ? ask(fmt::format("m{:x},8", number_of(rsp) + 8 * i)) : "E01");
    }
    return moment;
  }

  /// Steps up to `count` instructions and keeps the state before each, and the one after the last.
  std::vector<Moment> walk(std::size_t count) {
    std::vector<Moment> way{now()};
    std::string step = "s";
    while (way.size() <= count) {
      const std::string stop = ask(step);
      if (!stop.starts_with("T")) break;
      step = stop.starts_with("T05") ? "s" : "S" + stop.substr(1, 2);
      Moment moment = now();
      // A signal is reported before its handler begins; a repeated string instruction takes many
      // steps.
      const bool moved =
          register_of(moment.registers, kRip) != register_of(way.back().registers, kRip);
      if (moved) way.push_back(std::move(moment));
    }
    return way;
  }
};

/// Compares what is shown with what was there.
void compare(const Moment& shown, const Moment& was, Yield& yield) {
  ASSERT_EQ(register_of(shown.registers, kRip), register_of(was.registers, kRip));
  ASSERT_EQ(shown.registers.size(), was.registers.size());
  for (std::size_t i = 0; i < shown.registers.size(); ++i) {
    if (shown.registers[i] == 'x') continue;
    ASSERT_EQ(shown.registers[i], was.registers[i])
        << "digit " << i << " of g at pc " << register_of(was.registers, kRip);
  }
  for (std::size_t i = 0; i < kGeneral; ++i) {
    ++yield.all;
    if (register_of(shown.registers, i).find('x') == std::string::npos) ++yield.known;
  }
  for (std::size_t i = 0; i < kWords; ++i) {
    if (shown.stack[i].starts_with("E")) continue;
    ASSERT_EQ(shown.stack[i], was.stack[i])
        << "word " << i << " of the stack at pc " << register_of(was.registers, kRip);
  }
}

class LivePastTruth : public ::testing::TestWithParam<const char*> {};

TEST_P(LivePastTruth, WhatIsShownWasThere) {
  constexpr std::size_t kSteps = test::kSanitized ? 200 : 500;
  constexpr std::size_t kNear = 100;
  Traveller gdb{GetParam()};
  const std::vector<Moment> way = gdb.walk(kSteps);
  ASSERT_GT(way.size(), 2 * kNear);
  Yield near;
  Yield all;
  for (std::size_t i = way.size() - 1; i-- > 0;) {
    ASSERT_THAT(gdb.ask("bs"), StartsWith("T05"));
    Yield here;
    compare(gdb.now(), way[i], here);
    if (::testing::Test::HasFatalFailure()) return;
    all.known += here.known;
    all.all += here.all;
    if (i + kNear < way.size()) continue;
    near.known += here.known;
    near.all += here.all;
  }
  constexpr std::size_t kPercent = 100;
  RecordProperty("near", static_cast<int>(kPercent * near.known / near.all));
  RecordProperty("all", static_cast<int>(kPercent * all.known / all.all));
  EXPECT_GE(kPercent * near.known / near.all, 30U) << "few registers are known";
  Yield forward;
  for (std::size_t i = 1; i < kNear; ++i) {
    ASSERT_THAT(gdb.ask("s"), StartsWith("T05"));
    compare(gdb.now(), way[i], forward);
    if (::testing::Test::HasFatalFailure()) return;
  }
  EXPECT_THAT(gdb.ask("c"), HasSubstr("replaylog:end"));
  const Moment end = gdb.now();
  EXPECT_EQ(end.registers, way.back().registers);
  EXPECT_EQ(end.stack, way.back().stack);
}

INSTANTIATE_TEST_SUITE_P(
    Programs, LivePastTruth,
    ::testing::ValuesIn(test::every(
        2, std::vector<const char*>{"values_sorts_O0", "values_sorts_O2", "values_prints_O2",
                                    "values_jumps_O0", "values_jumps_O2", "values_signals_O0",
                                    "values_signals_O2", "values_maps_O2", "values_loops_O3",
                                    "values_objects_O0", "values_objects_O2"})),
    [](const auto& test) { return std::string{test.param}; });

/// A program, and how much of its values is recorded.
using RecordedProgram = std::pair<const char*, const char*>;

/// The program runs from translated code between what was stepped and the end.
class LivePastOfTranslatedCode : public ::testing::TestWithParam<RecordedProgram> {};

TEST_P(LivePastOfTranslatedCode, WhatIsShownWasThere) {
  constexpr std::size_t kSteps = test::kSanitized ? 150 : 300;
  Traveller gdb{GetParam().first, GetParam().second};
  const std::vector<Moment> way = gdb.walk(kSteps);
  std::map<std::string, std::size_t> visits;
  for (const Moment& moment : way) ++visits[register_of(moment.registers, kRip)];
  // Libraries may have been there before the judged part.
  const auto is_only_here = [&](std::size_t i) {
    constexpr std::uint64_t kLibraries = 0x7000'0000'0000;
    const std::string rip = register_of(way[i].registers, kRip);
    return visits[rip] == 1 && number_of(rip) < kLibraries;
  };
  std::size_t last = way.size() - 1;
  while (last > 0 && !is_only_here(last)) --last;
  ASSERT_GT(last, 0U);
  ASSERT_EQ(gdb.ask("QCatchSyscalls:1;e7"), "OK");
  std::string stop = gdb.ask("c");
  // Most of the programs end by a fault, the others by exit_group.
  const auto is_over = [&stop] {
    return stop.starts_with("T0b") || stop.find("syscall_entry:e7") != std::string::npos;
  };
  while (!is_over()) {
    ASSERT_THAT(stop, StartsWith("T"));
    stop = gdb.ask(stop.starts_with("T05") ? "c" : "C" + stop.substr(1, 2));
  }
  const std::string place =
      fmt::format("0,{:x},1", number_of(register_of(way[last].registers, kRip)));
  ASSERT_EQ(gdb.ask("Z" + place), "OK");
  constexpr int kMostVisits = 3000;
  for (int i = 0; i < kMostVisits && stop.find("replaylog:begin") == std::string::npos; ++i) {
    stop = gdb.ask("bc");
  }
  if (stop.find("replaylog:begin") == std::string::npos) GTEST_SKIP() << "too many visits";
  ASSERT_THAT(gdb.ask("c"), HasSubstr("swbreak"));
  ASSERT_EQ(gdb.ask("z" + place), "OK");
  Yield yield;
  for (std::size_t i = last;; --i) {
    compare(gdb.now(), way[i], yield);
    if (i == 0 || ::testing::Test::HasFatalFailure()) break;
    ASSERT_THAT(gdb.ask("bs"), StartsWith("T05"));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Programs, LivePastOfTranslatedCode,
    ::testing::ValuesIn(test::every(
        2,
        std::vector{
            RecordedProgram{"values_sorts_O0", "free"}, RecordedProgram{"values_jumps_O2", "free"},
            RecordedProgram{"values_maps_O2", "free"}, RecordedProgram{"values_loops_O2", "free"},
            RecordedProgram{"values_prints_O0", "free"}, RecordedProgram{"values_sorts_O0", "most"},
            RecordedProgram{"values_jumps_O2", "most"}, RecordedProgram{"values_prints_O0", "most"},
            RecordedProgram{"values_sorts_O2", "all"}, RecordedProgram{"values_jumps_O2", "all"},
            RecordedProgram{"values_signals_O2", "all"},
            RecordedProgram{"values_prints_O0", "all"}})),
    [](const auto& test) { return std::string{test.param.first} + "_" + test.param.second; });

class LivePastOfChangedMemory : public ::testing::TestWithParam<const char*> {};

TEST_P(LivePastOfChangedMemory, WhatIsShownWasThere) {
  const std::string program = "changes_itself";
  Session gdb{program, GetParam(), "free"};
  EXPECT_THAT(gdb.ask("c"), StartsWith("T0b"));
  const auto address_of = [&](const char* symbol) {
    return tracee::symbol_of(program, symbol).value();
  };
  // The newest visit comes first, with what was at an address then.
  const auto judge = [&](const char* symbol, const std::string& read,
                         const std::vector<std::string>& truth) {
    const std::string place = fmt::format("0,{:x},1", address_of(symbol));
    ASSERT_EQ(gdb.ask("Z" + place), "OK");
    for (const std::string& bytes : truth) {
      ASSERT_THAT(gdb.ask("bc"), HasSubstr("swbreak"));
      EXPECT_THAT(gdb.ask(read), AnyOf(StartsWith("E"), bytes));
    }
    ASSERT_EQ(gdb.ask("z" + place), "OK");
  };
  judge("mark", fmt::format("m{:x},2", address_of("constant")),
        {"1111", "2222", "4444", "", "2222", "1111", "3333", "1111"});
  judge("add_some", fmt::format("m{:x},3", address_of("add_some")), {"8d4701", "8d4703", ""});
}

INSTANTIATE_TEST_SUITE_P(Sources, LivePastOfChangedMemory, ::testing::Values("cache", "step"),
                         [](const auto& test) { return std::string{test.param}; });

/// Runs a program to its crash. Returns how many of its registers are known in the last part.
Yield yield_before_crash(const std::string& values) {
  constexpr int kSteps = 300;
  Traveller gdb{"values_objects_O2", values};
  EXPECT_THAT(gdb.ask("c"), StartsWith("T0b"));
  Yield yield;
  for (int i = 0; i < kSteps; ++i) {
    EXPECT_THAT(gdb.ask("bs"), StartsWith("T05"));
    const std::string registers = gdb.ask("g");
    for (std::size_t reg = 0; reg < kGeneral; ++reg) {
      ++yield.all;
      if (register_of(registers, reg).find('x') == std::string::npos) ++yield.known;
    }
  }
  return yield;
}

TEST(LivePastValues, ThatWereRecordedTellMore) {
  const Yield free = yield_before_crash("free");
  const Yield most = yield_before_crash("most");
  const Yield all = yield_before_crash("all");
  constexpr std::size_t kPercent = 100;
  EXPECT_GE(kPercent * all.known / all.all, 95U);
  EXPECT_LT(kPercent * free.known / free.all, 70U);
  EXPECT_GE(kPercent * most.known / most.all, 85U);
}

}  // namespace
}  // namespace backtrail::test
