// SPDX-License-Identifier: Apache-2.0
// Crash files that are truncated, have flipped bits, or lie: every reader ends with an error or
// shows less.
#include <csignal>
#include <fstream>
#include <random>
#include <regex>

#include <gmock/gmock.h>

#include "core_fixture.hpp"
#include "decoder/corefile/core_file.hpp"
#include "decoder/corefile/trace_archive.hpp"
#include "decoder/corefile/trace_check.hpp"
#include "report_fixture.hpp"
#include "server/rsp/frame_writer.hpp"
#include "test/support/effort.hpp"

namespace backtrail::tracee {
namespace {

using ::testing::HasSubstr;
using Bytes = std::vector<std::uint8_t>;

/// Bytes at the start of a file that hold its headers.
constexpr std::size_t kHeaderBytes = 64U << 10U;

/// Damages a file; each run makes the same damage.
class Damage {
 public:
  explicit Damage(Bytes file) : file_{std::move(file)} {}

  /// Cycles through the kinds: truncation, flipped bits in the headers or anywhere, very large
  /// numbers.
  Bytes next() {
    Bytes bytes = file_;
    const std::size_t among = std::min(bytes.size(), round_ % 2 == 0 ? kHeaderBytes : bytes.size());
    switch (round_++ % 4) {
      case 0:
        bytes.resize(random() % bytes.size());
        break;
      case 1:
        bytes.resize(random() % std::min(bytes.size(), kHeaderBytes));
        break;
      case 2:
        for (int i = 0; i < 4; ++i) {
          const std::size_t at = random() % (among / 8 - 1) * 8;
          std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4 + random() % 5, 0xff);
        }
        break;
      default:
        for (int i = 0; i < 20; ++i) {
          bytes[random() % among] ^= static_cast<std::uint8_t>(1U << (random() & 7U));
        }
    }
    return bytes;
  }

 private:
  std::uint32_t random() {
    seed_ = seed_ * 1664525U + 1013904223U;
    return seed_ >> 8U;
  }

  Bytes file_;
  std::size_t round_ = 0;
  std::uint32_t seed_ = 1;
};

void write_file(const std::string& path, const Bytes& bytes) {
  std::ofstream{path, std::ios::binary}.write(reinterpret_cast<const char*>(bytes.data()),
                                              static_cast<std::streamsize>(bytes.size()));
}

/// Returns a debugger's first packets.
std::string conversation() {
  std::string out = "+";
  for (const char* packet :
       {"qSupported:multiprocess+;xmlRegisters=i386", "?", "qXfer:features:read:target.xml:0,fff",
        "qXfer:threads:read::0,fff", "qXfer:auxv:read::0,fff", "qXfer:libraries-svr4:read::0,fff",
        "qXfer:siginfo:read::0,fff", "g", "m400000,1000", "m7fffffffe000,1000", "Qbtrace:bts",
        "qXfer:btrace:read:all:0,fff", "Qbtrace:off", "Qbtrace:pt", "qXfer:btrace:read:all:0,fff",
        "vFile:open:2f70726f632f312f6d617073,0,0", "vCont;c"}) {
    out += server::rsp::frame_packet(packet) + "+";
  }
  return out;
}

class DamagedFiles : public test::ReportFixture {
 protected:
  void expect_an_end(int round) {
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) <= 1) << round << ": " << status;
  }
};

TEST_F(DamagedFiles, TracesAreShorter) {
  record("crashes", {"null"});
  Damage damage{bytes_of(folder / "x.core")};
  int readable = 0;
  for (int round = 0; round < 400; ++round) {
    const Bytes bytes = damage.next();
    const auto core = decoder::CoreFile::parse(bytes);
    if (!core) continue;
    ++readable;
    const decoder::TraceArchive archive{*core};
    (void)archive.names();
    for (const auto& [tid, thread] : archive.threads()) (void)archive.load(tid);
  }
  EXPECT_GT(readable, 20);
}

/// Where records are missing, every view shows a gap: the records before it must not appear to lead
/// to those after it, nor to the crash.
TEST_F(DamagedFiles, GapsStandWhereRecordsAreMissing) {
  record("random_crash", {"5", "and crash", "4"});
  const Bytes file = bytes_of(folder / "x.core");
  const auto whole = decoder::CoreFile::parse(file);
  ASSERT_TRUE(whole);
  const decoder::TraceArchive reference{*whole};
  const std::uint32_t tid = whole->threads().front().tid;
  const std::vector<decoder::Record> all = reference.load(tid);
  const auto begin = static_cast<std::size_t>(whole->trace_segment().data() - file.data());
  const std::size_t size = whole->trace_segment().size();
  std::mt19937 random{11};
  for (int round = 0; round < 60; ++round) {
    Bytes bytes = file;
    const std::size_t at =
        begin + random() % (round % 3 == 0 ? std::min<std::size_t>(size, 300) : size);
    if (round % 2 == 0) {
      bytes.resize(at);
    } else {
      bytes[at] ^= static_cast<std::uint8_t>(1U << (random() % 8U));
    }
    const auto core = decoder::CoreFile::parse(bytes);
    ASSERT_TRUE(core) << round;
    const decoder::TraceArchive archive{*core};
    std::vector<decoder::Record> left = archive.load(tid);
    // Each record other than a gap follows its predecessor of the whole trace.
    ASSERT_FALSE(left.empty());
    EXPECT_EQ(left.front().kind, decoder::RecordKind::kGap);
    std::size_t place = all.size();
    for (std::size_t i = left.size(); i-- > 1;) {
      if (left[i].reason == decoder::GapReason::kOverflow) {
        place -= std::min<std::size_t>(place, left[i].payload);
        continue;
      }
      ASSERT_NE(place, 0U);
      ASSERT_EQ(left[i], all[--place]) << round << " " << i;
    }
    const auto checks = decoder::check_traces(archive);
    const bool harmed = left.size() != all.size();
    EXPECT_EQ(harmed, checks.at(tid).missing != 0) << round;
  }
}

/// Records missing at the end are a gap before the crash, in all forms of reports.
TEST_F(DamagedFiles, AMissingEndIsAGapInEveryReport) {
  record("random_crash", {"5", "and crash", "4"});
  Bytes bytes = bytes_of(folder / "x.core");
  const auto core = decoder::CoreFile::parse(bytes);
  ASSERT_TRUE(core);
  const auto begin = static_cast<std::size_t>(core->trace_segment().data() - bytes.data());
  bytes[begin + decoder::kBlockHeaderBytes + 10] ^= 1U;
  write_file(folder / "x.core", bytes);
  EXPECT_THAT(run({BT_SERVER, "info", "x.core"}), HasSubstr("damaged or missing"));
  EXPECT_THAT(report(), testing::ContainsRegex("--- at least [0-9]+ branches were lost here ---"));
  EXPECT_THAT(report({"--markdown"}), HasSubstr("branches were lost here"));
  EXPECT_THAT(report({"--json"}), HasSubstr("branches were lost here"));
  // The page draws the gaps named in its data; without scripts it shows the report as text.
  const std::string page = report({"--html"});
  EXPECT_THAT(page.substr(0, page.find("</noscript>")), HasSubstr("branches were lost here"));
  EXPECT_TRUE(std::regex_search(
      page.substr(page.find("id=\"meta\"")),
      std::regex{"\"gaps\":\\[\\[[0-9]+,\"at least [0-9]+ branches were lost here\"\\]"}));
  EXPECT_THAT(report({"--perfetto"}), HasSubstr("branches were lost here"));
  EXPECT_THAT(report({"--speedscope"}), HasSubstr("branches missing)"));
  EXPECT_THAT(report({"--folded"}), HasSubstr("[gaps: branches are missing]"));
}

TEST_F(DamagedFiles, ToolsEnd) {
  record("crashes", {"null"});
  Damage damage{bytes_of(folder / "x.core")};
  for (int round = 0; round < (test::kSanitized ? 10 : 20); ++round) {
    write_file(folder / "x.core", damage.next());
    run({BT_SERVER, "info", "x.core"}, -1);
    expect_an_end(round);
    run({BT_SERVER, "report", "x.core", round % 2 == 0 ? "--json" : "--html", "-o", "out"}, -1);
    expect_an_end(round);
    run({BT_SERVER, "replay", "-", "x.core"}, -1, conversation());
    expect_an_end(round);
  }
}

TEST_F(DamagedFiles, ArchivesToo) {
  record("crashes", {"null"});
  run({BT_SERVER, "pack", "x.core"});
  Damage damage{bytes_of(folder / "x.core.tar.zst")};
  for (int round = 0; round < 8; ++round) {
    write_file(folder / "x.core.tar.zst", damage.next());
    run({BT_SERVER, round % 2 == 0 ? "info" : "report", "x.core.tar.zst"}, -1);
    expect_an_end(round);
  }
}

TEST_F(DamagedFiles, WhatIsNoCrashFileIsSaid) {
  EXPECT_THAT(run({BT_SERVER, "replay", "-", "/etc/hostname"}, 1), HasSubstr("/etc/hostname"));
  EXPECT_THAT(run({BT_SERVER, "report", "nothing.core"}, 1), HasSubstr("nothing.core"));
  EXPECT_THAT(run({BT_SERVER, "report", "/etc/hostname"}, 1), HasSubstr("/etc/hostname"));
  EXPECT_THAT(run({BT_SERVER, "report"}, 1), HasSubstr("FILE"));
}

}  // namespace
}  // namespace backtrail::tracee
