// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using decoder::Block;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;
using tracee::TraceFormat;

class BtraceTest : public SessionTest {
 protected:
  BtraceTest() { thread = target.add_process(1); }

  std::string read(std::string_view annex) {
    return ask("qXfer:btrace:read:" + std::string{annex} + ":0,10000");
  }

  ThreadId thread;
};

TEST_F(BtraceTest, EnablesWithTheConfiguredSize) {
  EXPECT_EQ(ask("Qbtrace-conf:bts:size=0x2000"), "OK");
  EXPECT_EQ(ask("Qbtrace-conf:pt:size=8000"), "OK");
  EXPECT_EQ(ask("Qbtrace:bts"), "OK");
  ASSERT_TRUE(target.thread(thread).trace);
  EXPECT_EQ(target.thread(thread).trace->format, TraceFormat::kBts);
  EXPECT_EQ(target.thread(thread).trace->size_bytes, 0x2000U);
  EXPECT_EQ(ask("Qbtrace:bts"), "E.Btrace already enabled.");
  EXPECT_EQ(ask("Qbtrace:off"), "OK");
  EXPECT_EQ(ask("Qbtrace:off"), "E.Branch tracing not enabled.");
  EXPECT_EQ(ask("Qbtrace:pt"), "OK");
  EXPECT_EQ(target.thread(thread).trace->format, TraceFormat::kPt);
  EXPECT_EQ(target.thread(thread).trace->size_bytes, 0x8000U);
}

TEST_F(BtraceTest, NeedsNoThreadForTheConfiguration) {
  target.all.clear();
  EXPECT_EQ(ask("Qbtrace-conf:bts:size=0xffffffff"), "OK");
  EXPECT_EQ(state.bts_size_bytes, 0xffffffffU);
  EXPECT_EQ(ask("Qbtrace:bts"), "E.No such thread.");
  EXPECT_EQ(ask("Qbtrace:off"), "E.No such thread.");
  EXPECT_EQ(read("all"), "E.No such thread.");
}

TEST_F(BtraceTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EQ(ask("Qbtrace:xx"), "E.Bad Qbtrace operation.  Use bts, pt, or off.");
  EXPECT_EQ(ask("Qbtrace:"), "E.Bad Qbtrace operation.  Use bts, pt, or off.");
  EXPECT_EQ(ask("Qbtrace-conf:foo"), "E.Bad Qbtrace configuration option.");
  for (const char* bad : {"Qbtrace-conf:bts:size=", "Qbtrace-conf:bts:size=zz",
                          "Qbtrace-conf:bts:size=0x", "Qbtrace-conf:bts:size=0x100000000",
                          "Qbtrace-conf:pt:size=0x10;", "Qbtrace-conf:pt:size=-1"}) {
    EXPECT_EQ(ask(bad), "E.Bad size value.") << bad;
  }
}

TEST_F(BtraceTest, ShowsWhyItCannotBeEnabled) {
  target.enable_error = make_error(TraceErrc::kUnsupported, "perf_event_open");
  EXPECT_THAT(ask("Qbtrace:pt"), StartsWith("E.perf_event_open: "));
}

TEST_F(BtraceTest, TellsTheConfigurationInForce) {
  EXPECT_EQ(ask("qXfer:btrace-conf:read::0,1000"), "E.Btrace not enabled.");
  ask("Qbtrace:bts");
  EXPECT_EQ(ask("qXfer:btrace-conf:read::0,1000"),
            "l<!DOCTYPE btrace-conf SYSTEM \"btrace-conf.dtd\">\n<btrace-conf version=\"1.0\">\n"
            "<bts size=\"0x10000\"/>\n</btrace-conf>\n");
  EXPECT_EQ(ask("qXfer:btrace-conf:read:x:0,1000"), "E01");
  ask("Qbtrace:off");
  ask("Qbtrace:pt");
  EXPECT_THAT(ask("qXfer:btrace-conf:read::0,1000"), HasSubstr("<pt size=\"0x4000\"/>"));
}

TEST_F(BtraceTest, ListsBlocksInTheirOrder) {
  ask("Qbtrace:bts");
  target.traces.emplace(TraceRead::kAll,
                        TraceDocument{std::vector<Block>{{TraceeAddr{0x30}, TraceeAddr{0x34}},
                                                         {TraceeAddr{0x10}, TraceeAddr{0x1f}}}});
  EXPECT_EQ(read("all"),
            "l<!DOCTYPE btrace SYSTEM \"btrace.dtd\">\n<btrace version=\"1.0\">\n"
            "<block begin=\"0x30\" end=\"0x34\"/>\n<block begin=\"0x10\" end=\"0x1f\"/>\n"
            "</btrace>\n");
}

TEST_F(BtraceTest, WritesPtWithoutAProcessor) {
  ask("Qbtrace:pt");
  target.traces.emplace(TraceRead::kAll, TraceDocument{PtTrace{{0x02, 0x82, 0xff}}});
  target.traces.emplace(TraceRead::kNew, TraceDocument{PtTrace{}});
  const std::string all = read("all");
  EXPECT_THAT(all, HasSubstr("<pt>\n<raw>0282ff</raw>\n</pt>\n"));
  EXPECT_THAT(all, Not(HasSubstr("cpu")));
  EXPECT_THAT(read("new"), HasSubstr("<pt>\n</pt>\n"));
}

TEST_F(BtraceTest, NamesTheProcessorWhosePacketsTheyAre) {
  ask("Qbtrace:pt");
  target.traces.emplace(TraceRead::kAll,
                        TraceDocument{PtTrace{{0x02}, decoder::CpuIdentity{6, 78, 3}}});
  EXPECT_THAT(read("all"), HasSubstr("<pt>\n<pt-config>\n<cpu vendor=\"GenuineIntel\" family=\"6\" "
                                     "model=\"78\" stepping=\"3\"/>\n</pt-config>\n<raw>02</raw>"));
}

TEST_F(BtraceTest, SaysWhatWentWrong) {
  EXPECT_EQ(read("all"), "E.Btrace not enabled.");
  ask("Qbtrace:bts");
  EXPECT_EQ(read("sideways"), "E.Bad annex.");
  EXPECT_EQ(read(""), "E.Bad annex.");
  EXPECT_EQ(read("delta"), "E.Overflow.");
  target.traces.emplace(TraceRead::kDelta, fail(TraceErrc::kUnsupported, "pt"));
  EXPECT_EQ(read("delta"), "E.Generic Error.");
}

TEST_F(BtraceTest, ReadsTheTargetOncePerDocument) {
  ask("Qbtrace:bts");
  std::vector<Block> blocks(1000, Block{TraceeAddr{0x401000}, TraceeAddr{0x401008}});
  target.traces.emplace(TraceRead::kDelta, TraceDocument{blocks});
  std::string document;
  std::string part;
  do {
    part = ask("qXfer:btrace:read:delta:" + fmt::format("{:x}", document.size()) + ",1000");
    ASSERT_GT(part.size(), 1U);
    document += part.substr(1);
  } while (part[0] == 'm');
  EXPECT_EQ(part[0], 'l');
  EXPECT_EQ(target.trace_reads, 1);
  EXPECT_THAT(document, ::testing::EndsWith("</btrace>\n"));
}

TEST_F(BtraceTest, NeverConsumesADeltaInTheMiddle) {
  ask("Qbtrace:bts");
  target.traces.emplace(TraceRead::kDelta, TraceDocument{std::vector<Block>{}});
  EXPECT_EQ(ask("qXfer:btrace:read:delta:10,1000"), "E01");
  EXPECT_EQ(target.trace_reads, 0);
}

TEST_F(BtraceTest, AnotherThreadIsAnotherDocument) {
  target.add_thread(1, 2);
  ask("Hg1");
  ask("Qbtrace:bts");
  ask("Hg2");
  ask("Qbtrace:bts");
  target.traces.emplace(
      TraceRead::kAll, TraceDocument{std::vector<Block>(100, Block{TraceeAddr{1}, TraceeAddr{1}})});
  EXPECT_THAT(ask("qXfer:btrace:read:all:0,10"), StartsWith("m"));
  ask("Hg1");
  EXPECT_EQ(ask("qXfer:btrace:read:all:10,10"), "E01");
}

}  // namespace
}  // namespace backtrail::server
