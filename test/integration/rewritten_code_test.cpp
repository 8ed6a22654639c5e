// SPDX-License-Identifier: Apache-2.0
// Reports on programs that rewrite their code: they show what was executed, not what memory has at
// the end.
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>

#include "arch/base/file_bytes.hpp"
#include "decoder/corefile/trace_blocks.hpp"
#include "elf_symbols.hpp"
#include "report_fixture.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

using Words = std::vector<std::string>;

class RewrittenCode : public ReportFixture {
 protected:
  /// Records an inferior and returns what it printed.
  std::string printed(const std::string& name, const std::string& values) {
    return recorded(name, {"--values=" + values});
  }
  /// @param words  The beginning of a command that runs the rest.
  std::string recorded(const std::string& name, const Words& options, Words words = {}) {
    words.insert(words.end(), {BT_SERVER, "record"});
    words.insert(words.end(), options.begin(), options.end());
    words.insert(words.end(), {"-o", "x.core", "--", std::string{BT_INFERIOR_DIR} + "/" + name});
    return run(words, -1);
  }
  /// Returns what `replay` answers to gdb's packets, console output left out.
  std::vector<std::string> replies(const std::vector<std::string>& packets) {
    std::string input = framed("QStartNoAckMode") + "+";
    for (const std::string& packet : packets) input += framed(packet);
    const std::string output = run({BT_SERVER, "replay", "-", "x.core"}, -1, input);
    std::vector<std::string> out;
    for (std::size_t at = output.find('$'); at != std::string::npos; at = output.find('$', at)) {
      const std::size_t end = output.find('#', at);
      const std::string reply = without_runs(output.substr(at + 1, end - at - 1));
      at = end;
      if (reply.starts_with('O') && reply != "OK") continue;
      out.push_back(reply);
    }
    EXPECT_EQ(out.size(), packets.size() + 1);
    if (!out.empty()) out.erase(out.begin());
    out.resize(packets.size());
    return out;
  }
  static std::string framed(const std::string& packet) {
    unsigned sum = 0;
    for (const char c : packet) sum += static_cast<unsigned char>(c);
    return fmt::format("${}#{:02x}", packet, sum & 0xff);
  }
  /// Undoes the run-length encoding of a reply.
  static std::string without_runs(const std::string& reply) {
    std::string out;
    for (std::size_t i = 0; i < reply.size(); ++i) {
      if (reply[i] != '*' || out.empty() || i + 1 == reply.size()) {
        out += reply[i];
      } else {
        out.append(static_cast<std::size_t>(reply[++i] - 29), out.back());
      }
    }
    return out;
  }
  /// Returns the number in hexadecimal digits, lowest byte first.
  static std::uint64_t number_in(const std::string& reply) {
    std::uint64_t out = 0;
    for (std::size_t i = 0; i + 1 < reply.size() && i < 16; i += 2) {
      out |= std::uint64_t{std::stoul(reply.substr(i, 2), nullptr, 16)} << 4 * i;
    }
    return out;
  }
  static std::string hex(const std::string& text) {
    std::string out;
    for (const char c : text) out += fmt::format("{:02x}", static_cast<unsigned char>(c));
    return out;
  }
};

/// One place held a function that calls, one that jumps, and one that calls again.
TEST_F(RewrittenCode, CallsAreThoseThatWereMade) {
  for (const char* values : {"free", "most", "all"}) {
    run({BT_SERVER, "record", "--values=" + std::string{values}, "-o", "x.core", "--",
         std::string{BT_INFERIOR_DIR} + "/rewritten_calls"},
        -1);
    EXPECT_THAT(report(), ContainsRegex("\n      0x[0-9a-f]+  rewritten_calls.c:[0-9]+\n"
                                        "        first\n"
                                        "      0x[0-9a-f]+  rewritten_calls.c:[0-9]+\n"
                                        "      second  \\(tail call\\)\n"
                                        "      0x[0-9a-f]+  rewritten_calls.c:[0-9]+\n"
                                        "        third\n"
                                        "  => SIGSEGV at main"));
  }
  const std::string folded = report({"--folded"});
  EXPECT_THAT(folded, ContainsRegex(";main;0x[0-9a-f]+;first [0-9]"));
  EXPECT_THAT(folded, ContainsRegex(";main;second [0-9]"));
  for (const char* format : {"--speedscope", "--perfetto"}) {
    EXPECT_THAT(report({format}), HasSubstr("third")) << format;
  }
}

TEST_F(RewrittenCode, ThePageShowsTheInstructionsThatWereExecuted) {
  record("rewritten_calls");
  EXPECT_THAT(report({"--html"}), AllOf(HasSubstr("\"callq *%rdi\""), HasSubstr("\"jmpq *%rdi\"")));
}

/// Its code is in a file, and never writable and executable at once.
TEST_F(RewrittenCode, SteppingBackGoesThroughTheInstructionsOfEachPatch) {
  constexpr int kSteps = 160;
  for (const char* values : {"free", "all"}) {
    const std::uint64_t function = std::stoul(printed("patches_itself", values), nullptr, 16);
    std::vector<std::string> packets;
    for (int i = 0; i < kSteps; ++i) packets.insert(packets.end(), {"bs", "p10"});
    const std::vector<std::string> replied = replies(packets);
    std::vector<std::uint64_t> offsets;
    for (std::size_t i = 1; i < replied.size(); i += 2) {
      const std::uint64_t pc = number_in(replied[i]);
      if (pc >= function && pc < function + 8) offsets.push_back(pc - function);
    }
    // The newest call comes first.
    EXPECT_THAT(offsets, ElementsAre(6, 4, 1, 0, 6, 5, 2, 1, 0, 6, 3, 0)) << values;
  }
}

/// Memory of a file is what the file has, or unknown.
TEST_F(RewrittenCode, ConstantsThatTheProgramChangedAreNotThoseOfItsFile) {
  constexpr int kMarks = 6;
  const std::vector<std::string> truth{"in file", "", "private", "in file", "written", "in file"};
  for (const char* values : {"free", "most", "all"}) {
    std::istringstream words{printed("changed_constants", values)};
    std::string constant;
    std::string mark;
    words >> constant >> mark;
    std::vector<std::string> packets{"Z0," + mark.substr(2) + ",1"};
    for (int i = 0; i < kMarks; ++i) {
      packets.insert(packets.end(), {"bc", "p10", "m" + constant.substr(2) + ",8"});
    }
    const std::vector<std::string> replied = replies(packets);
    for (std::size_t i = 0; i < kMarks; ++i) {
      EXPECT_EQ(number_in(replied[3 * i + 2]), std::stoul(mark, nullptr, 16));
      const std::string bytes = hex(truth[i]) + "00";
      EXPECT_THAT(replied[3 * i + 3], AnyOf(StartsWith("E"), truth[i].empty() ? "" : bytes)) << i;
    }
    EXPECT_EQ(replied[3], hex("in file") + "00");
  }
}

/// Memory that was not changed is known all the way back.
TEST_F(RewrittenCode, OtherConstantsAreKnown) {
  const std::string words = printed("changed_constants", "free");
  const std::string mark = words.substr(words.find(' ') + 3);
  std::vector<std::string> packets{"Z0," + mark.substr(0, mark.find('\n')) + ",1"};
  for (int i = 0; i < 7; ++i) packets.emplace_back("bc");
  packets.insert(packets.end(), {"p10"});
  const std::vector<std::string> replied = replies(packets);
  // The beginning of the history: the dynamic linker's code, which has been there all the time.
  const std::uint64_t start = number_in(replied.back());
  packets.push_back(fmt::format("m{:x},8", start));
  EXPECT_THAT(replies(packets).back(), Not(StartsWith("E")));
}

/// The bytes that are shown of the past are those that were there, or unknown.
class ChangedMemory : public RewrittenCode {
 protected:
  /// Reads the constant at each mark.
  void judge_constants() {
    // The newest mark comes first; at one of them nothing was mapped.
    const Words truth{"1111", "2222", "4444", "", "2222", "1111", "3333", "1111"};
    const std::uint64_t mark = address_of("mark");
    Words packets{fmt::format("Z0,{:x},1", mark)};
    for (std::size_t i = 0; i < truth.size(); ++i) {
      packets.insert(packets.end(), {"bc", "p10", fmt::format("m{:x},2", address_of("constant"))});
    }
    const Words replied = replies(packets);
    for (std::size_t i = 0; i < truth.size(); ++i) {
      EXPECT_EQ(number_in(replied[3 * i + 2]), mark);
      EXPECT_THAT(replied[3 * i + 3], AnyOf(StartsWith("E"), truth[i])) << i;
    }
    EXPECT_EQ(replied[3], truth[0]);
  }
  /// Makes the blocks of facts in the file unreadable.
  void damage_facts() {
    const std::string path = folder / "x.core";
    auto bytes = file_bytes(path).value_or(std::vector<std::uint8_t>{});
    const auto magic = std::bit_cast<std::array<std::uint8_t, 4>>(decoder::kFactsMagic);
    int blocks = 0;
    for (auto at = bytes.begin();; ++blocks) {
      at = std::search(at, bytes.end(), magic.begin(), magic.end());
      if (at == bytes.end()) break;
      *at ^= 0xff;
    }
    EXPECT_GT(blocks, 0);
    std::ofstream out{path, std::ios::binary};
    out.write(reinterpret_cast<const char*>(bytes.data()),  // NOLINT
              static_cast<std::streamsize>(bytes.size()));
  }
  static std::uint64_t address_of(const std::string& symbol) {
    return tracee::symbol_of("changes_itself", symbol).value();
  }
};

/// Old files do not tell since when memory has been constant, and neither do those of hardware.
TEST_F(ChangedMemory, IsKnownWithoutFactsWhereValuesTellIt) {
  recorded("changes_itself", {"--source", "step"});
  damage_facts();
  judge_constants();
}

/// A way to record, by its name.
struct Way {
  const char* name;
  std::vector<std::string> options;
  bool knows_file = false;  ///< Code of files is known before it was patched, too.
  bool has_room = true;     ///< For translated code; else the cache source steps.
};

class ChangesItself : public ChangedMemory, public ::testing::WithParamInterface<Way> {
 protected:
  void SetUp() override {
    if (!GetParam().has_room && kSanitized) {
      GTEST_SKIP() << "sanitizers need terabytes of addresses";
    }
    recorded("changes_itself", GetParam().options, GetParam().has_room ? Words{} : limited());
  }
  /// Returns the beginning of a command that runs others with little address space, which they
  /// cannot enlarge.
  static Words limited() {
    Words words{"sh", "-c", "ulimit -v 200000 && exec \"$0\" \"$@\""};
    if (::geteuid() == 0) {
      const Words less{"setpriv", "--bounding-set=-sys_resource", "--inh-caps=-sys_resource"};
      words.insert(words.begin(), less.begin(), less.end());
    }
    return words;
  }
};

TEST_P(ChangesItself, ConstantsAreThoseThatWereThere) {
  judge_constants();
}

TEST_P(ChangesItself, InstructionsAreThoseThatWereExecuted) {
  constexpr std::size_t kSteps = 1200;  // more than the program makes
  const std::uint64_t function = address_of("add_some");
  // The program does not tell where it made code. Its own is far below; the place of mappings is
  // random in 16 TiB at most (vm.mmap_rnd_bits).
  constexpr std::uint64_t kMade = 0x6000'0000'0000;
  std::vector<std::string> packets;
  for (std::size_t i = 0; i < kSteps; ++i) packets.insert(packets.end(), {"bs", "p10"});
  const std::vector<std::string> read = replies(packets);
  packets.clear();
  for (std::size_t i = 1; i < read.size() && !read[i - 1].starts_with("T05replaylog"); i += 2) {
    const std::uint64_t pc = number_in(read[i]);
    packets.insert(packets.end(),
                   {"bs", fmt::format("m{:x},1", pc), fmt::format("m{:x},1", pc + 2)});
  }
  const std::vector<std::string> bytes = replies(packets);
  std::vector<std::string> patched;
  std::vector<std::string> made;
  for (std::size_t i = 0; 3 * i < bytes.size(); ++i) {
    const std::uint64_t pc = number_in(read[2 * i + 1]);
    const std::string& first = bytes[3 * i + 1];
    const bool is_long = first == "8d" || first == "83";
    const std::string insn =
        fmt::format("{}:{}{}", pc % 16, first, is_long ? bytes[3 * i + 2] : "");
    if (pc >= function && pc < function + 8) patched.push_back(insn);
    if (pc >= kMade) made.push_back(insn);
  }
  EXPECT_THAT(made, ElementsAre("3:c3", "0:8d03", "3:c3", "0:8d02", "3:c3", "0:8d01"));
  // The cache source does not tell what ran before the first patch.
  std::vector<std::string> truth{"3:c3",   "0:8d01", "3:c3", "0:8d03", "5:c3",
                                 "2:8305", "0:89",   "3:c3", "0:8d01"};
  if (!GetParam().knows_file) {
    truth.pop_back();
    truth.back() = "3:E01";
  }
  EXPECT_EQ(patched, truth);
}

INSTANTIATE_TEST_SUITE_P(Ways, ChangesItself,
                         ::testing::Values(Way{"cache", {}}, Way{"all", {"--all"}},
                                           Way{"step", {"--source", "step"}, true},
                                           Way{"step_all", {"--source", "step", "--all"}, true},
                                           Way{"cache_that_steps", {}, true, false}),
                         [](const auto& way) { return std::string{way.param.name}; });

}  // namespace
}  // namespace backtrail::test
