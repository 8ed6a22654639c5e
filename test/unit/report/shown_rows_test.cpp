// SPDX-License-Identifier: Apache-2.0
// Tests which rows are shown first. Rows are functions with dashes for levels. ">": not returned;
// "$": from the stack; ".": shown as a caller only.
#include "decoder/report/shown_rows.hpp"

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using ::testing::ElementsAre;

std::vector<ReportRow> rows(const std::vector<std::string>& lines) {
  std::vector<ReportRow> out;
  for (const std::string& line : lines) {
    ReportRow row;
    const std::size_t marks = line.find_first_not_of('-');
    const std::size_t name = line.find_first_not_of("->$.");
    const std::string marked = line.substr(marks, name - marks);
    row.level = static_cast<std::uint32_t>(marks);
    row.function = line.substr(name);
    row.end = marked.find('>') == std::string::npos ? CallEnd::kReturned : CallEnd::kOpen;
    row.from_stack = marked.find('$') != std::string::npos;
    row.context = marked.find('.') != std::string::npos;
    out.push_back(row);
  }
  return out;
}

std::vector<std::string> names(const std::vector<ReportRow>& rows) {
  std::vector<std::string> out;
  out.reserve(rows.size());
  for (const ReportRow& row : rows) {
    out.push_back(std::string(row.level, '-') +
                  (row.kind == RowKind::kOmitted ? std::to_string(row.repeat) : row.function));
  }
  return out;
}

TEST(ShownRows, BeginAtMain) {
  const ShownRows shown = without_start_up(
      rows({"_dl_start", "-_dl_main", ">_start", "->__libc_start_main", "--call_init",
            "-->__libc_start_call_main", "---_setjmp", "--->main", "---->f"}));
  EXPECT_THAT(names(shown.rows), ElementsAre("main", "-f"));
  EXPECT_EQ(shown.start_up, 4U);
}

TEST(ShownRows, WhatMainDidIsKeptWhenItHasReturned) {
  EXPECT_THAT(names(without_start_up(rows({">_start", "->__libc_start_main", "-->libc.so.6+0x27d68",
                                           "---main", "----f", "--->exit", "---->g"}))
                        .rows),
              ElementsAre("main", "-f", "exit", "-g"));
}

TEST(ShownRows, AThreadBeginsAtItsFunction) {
  const ShownRows shown = without_start_up(
      rows({">clone3", "->start_thread", "--__ctype_init", "--_setjmp", "-->work", "--->f"}));
  EXPECT_THAT(names(shown.rows), ElementsAre("work", "-f"));
  EXPECT_EQ(shown.start_up, 2U);
  // The thread's function has returned, and a destructor runs.
  EXPECT_THAT(names(without_start_up(rows({">clone3", "->start_thread", "--_setjmp", "--work",
                                           "---f", "-->__call_tls_dtors", "--->g"}))
                        .rows),
              ElementsAre("work", "-f", "__call_tls_dtors", "-g"));
}

TEST(ShownRows, WhatWasDoneBeforeCallersFromTheStackIsKept) {
  EXPECT_THAT(names(without_start_up(rows({"old", "-older", ">$_start", "->$__libc_start_main",
                                           "-->$main", "--->f"}))
                        .rows),
              ElementsAre("old", "-older", "main", "-f"));
}

TEST(ShownRows, WithoutStartUpAllIsShown) {
  EXPECT_THAT(names(without_start_up(rows({">f", "->g"})).rows), ElementsAre("f", "-g"));
  EXPECT_THAT(names(without_start_up(rows({"f", "-g"})).rows), ElementsAre("f", "-g"));
  EXPECT_THAT(names(without_start_up(rows({">_start", "->__libc_start_main"})).rows),
              ElementsAre("_start", "-__libc_start_main"));
  EXPECT_TRUE(without_start_up({}).rows.empty());
}

TEST(ShownRows, FewCallersAreTheOutermostAndTheInnermost) {
  const std::vector<ReportRow> all =
      rows({">.a", "->.b", "-->.c", "--->.d", "---->.e", "----->.f", "------g", "------h"});
  EXPECT_THAT(names(with_few_callers(all, 4)),
              ElementsAre("a", "-b", "---2", "----e", "-----f", "------g", "------h"));
  EXPECT_EQ(with_few_callers(all, 6).size(), all.size());
}

TEST(ShownRows, ThreadsInTheSameCallsAreAGroup) {
  Report report;
  for (const char* function : {"f", "f", "g", "f", "g"}) {
    ReportThread thread;
    thread.rows = rows({std::string{">"} + function, "->wait"});
    report.threads.push_back(thread);
  }
  report.threads.front().died = true;
  const std::vector<ThreadGroup> groups = thread_groups(report);
  ASSERT_EQ(groups.size(), 3U);
  EXPECT_THAT(groups[0].threads, ElementsAre(0U));
  EXPECT_THAT(groups[1].threads, ElementsAre(1U, 3U));
  EXPECT_THAT(groups[2].threads, ElementsAre(2U, 4U));
}

}  // namespace
}  // namespace backtrail::decoder
