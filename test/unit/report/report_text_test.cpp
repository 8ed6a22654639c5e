// SPDX-License-Identifier: Apache-2.0
// Tests reports with hostile names in every format.
#include "decoder/report/report_text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <boost/json.hpp>

namespace backtrail::decoder {
namespace {

using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

Report hostile(std::size_t threads = 1) {
  Report report;
  report.program = "::error::\x1b[2J</script>";
  report.command = "\n::error file=x";
  report.pid = 7;
  report.signal = 11;
  report.signal_name = "SIGSEGV";
  report.cause = "a cause";
  report.has_address = true;
  report.notes = {"```\nout of the fence"};
  for (std::size_t i = 0; i < threads; ++i) {
    ReportThread thread;
    thread.tid = static_cast<std::uint32_t>(7 + i);
    thread.name = "t\xff";
    thread.died = i == 0;
    thread.place = {TraceeAddr{0x1234}, "lib.so+0x34", {{"f\n````", "/a/b.c", 3, false}}};
    thread.instruction = "ret";
    thread.recorded = thread.looked_at = 100;
    ReportRow call;
    call.function = "g<\"&\\>";
    call.file = "/a/c.c";
    call.line = 9;
    call.repeat = 1234;
    call.end = CallEnd::kOpen;
    thread.rows = {call};
    report.threads.push_back(thread);
  }
  return report;
}

TEST(ReportText, LinesBeginWithWordsOfOurs) {
  const std::string text = report_text(hostile());
  EXPECT_THAT(text, AllOf(Not(HasSubstr("\n::")), Not(HasSubstr("\x1b")), Not(HasSubstr("\xff"))));
  EXPECT_THAT(text, AllOf(HasSubstr("> g<\"&\\>  c.c:9  x 1,234\n"),
                          HasSubstr("b.c:3 (0x1234 = lib.so+0x34): ret")));
  EXPECT_THAT(text, HasSubstr("died of SIGSEGV: a cause\n"));
}

TEST(ReportText, RoundsAreCountedAndNamed) {
  Report report = hostile();
  ReportRow row;
  row.kind = RowKind::kRounds;
  row.level = 2;
  row.function = "a\nb, c";
  row.repeat = 12345;
  row.nested = 2;
  row.calls = 24690;
  report.threads[0].rows.push_back(row);
  EXPECT_THAT(report_text(report),
              ContainsRegex("\n        \\.\\.\\. 12,345 more rounds of a.*, c \\.\\.\\.\n"));
  report.threads[0].rows.back().calls = 100000;
  EXPECT_THAT(report_text(report), HasSubstr(", c, 100,000 calls in all ..."));
  const auto json = boost::json::parse(report_json(report));
  const auto& last = json.at("threads").at(0).at("calls").as_array().back();
  EXPECT_EQ(last.at("kind"), "rounds");
  EXPECT_EQ(last.at("times"), 12345);
  EXPECT_EQ(last.at("of"), 2);
  EXPECT_EQ(last.at("calls"), 100000);
  EXPECT_FALSE(last.as_object().contains("nested"));
}

TEST(ReportText, LossesAreSaidAsFarAsTheyAreKnown) {
  Report report = hostile();
  ReportThread& thread = report.threads[0];
  EXPECT_THAT(report_text(report), Not(HasSubstr("lost in gaps")));
  thread.lost_between = 1234;
  EXPECT_THAT(report_text(report), HasSubstr("; 1,234 were lost in gaps"));
  thread.lost_between_is_exact = false;
  EXPECT_THAT(report_text(report), HasSubstr("; at least 1,234 were lost in gaps"));
  thread.lost_between = 0;
  EXPECT_THAT(report_text(report), HasSubstr("; an unknown number were lost in gaps"));
}

TEST(ReportText, TimesAreSaidInWords) {
  Report report = hostile();
  ReportThread& thread = report.threads[0];
  thread.times = OffSums{.known_ns = 2'500'000'000,
                         .waits = 1200,
                         .waited_ns = 12'000'000,
                         .preemptions = 1,
                         .preempted_ns = 340'000,
                         .others = 3,
                         .others_ns = 999,
                         .lost = 4};
  ReportRow row;
  row.kind = RowKind::kOff;
  row.level = 1;
  row.repeat = 2;
  row.off = {.position = 5, .ns = 12'345'678, .before_end_ns = 3'000, .preempted = false};
  thread.rows.push_back(row);
  const std::string text = report_text(report);
  EXPECT_THAT(text,
              HasSubstr("  last 2.5 s: waited 1,200 times (12 ms), preempted 1 time (340 us), "
                        "briefly off the CPU 3 times (999 ns); 4 marks were lost\n"));
  EXPECT_THAT(text,
              HasSubstr("      ... waited for 12 ms, 2 times, until 3.0 us before the end\n"));
}

TEST(ReportText, JsonIsReadBackAsItWas) {
  const auto value = boost::json::parse(report_json(hostile()));
  EXPECT_EQ(value.at("program").as_string(), "::error::\x1b[2J</script>");
  const auto& thread = value.at("threads").at(0);
  EXPECT_EQ(thread.at("name").as_string(), "t\xef\xbf\xbd");
  EXPECT_EQ(thread.at("at").at("address").as_string(), "0x1234");
  const auto& call = thread.at("calls").at(0);
  EXPECT_EQ(call.at("function").as_string(), "g<\"&\\>");
  EXPECT_EQ(call.at("times").as_int64(), 1234);
  EXPECT_EQ(call.at("end").as_string(), "open");
}

TEST(ReportText, MarkdownStaysInItsFences) {
  const std::string text = report_markdown(hostile());
  EXPECT_THAT(text, AllOf(HasSubstr("&lt;/script&gt;"), HasSubstr("`````text\n"),
                          HasSubstr("<details open>")));
}

TEST(ReportText, MarkdownKeepsItsBound) {
  constexpr std::size_t kMost = 20000;
  Report report = hostile(1000);
  // Threads in the same calls would be grouped.
  for (ReportThread& thread : report.threads) {
    thread.rows.front().line = thread.tid;
  }
  const std::string text = report_markdown(report, kMost);
  EXPECT_LT(text.size(), kMost);
  EXPECT_THAT(text, HasSubstr("more threads are left out"));
}

}  // namespace
}  // namespace backtrail::decoder
