// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class QXferTest : public SessionTest {
 protected:
  QXferTest() {
    thread = target.add_process(0x1f);
    offer_all();
  }

  std::string read(const std::string& object, const std::string& annex = "") {
    return ask("qXfer:" + object + ":read:" + annex + ":0,10000");
  }

  ThreadId thread;
};

TEST_F(QXferTest, CutsDocumentsIntoSlices) {
  target.all.at(0x1f).exec_file = "/a/program";
  EXPECT_EQ(ask("qXfer:exec-file:read:1f:0,4"), "m/a/p");
  EXPECT_EQ(ask("qXfer:exec-file:read:1f:4,6"), "lrogram");
  EXPECT_EQ(ask("qXfer:exec-file:read:1f:4,ffffffff"), "lrogram");
  EXPECT_EQ(ask("qXfer:exec-file:read:1f:a,10"), "l");
  EXPECT_EQ(ask("qXfer:exec-file:read:1f:ffffffffffffffff,10"), "l");
}

TEST_F(QXferTest, NeverSaysMoreWithoutData) {
  EXPECT_EQ(ask("qXfer:exec-file:read:1f:0,0"), "E01");
}

TEST_F(QXferTest, SlicesComeFromOneMoment) {
  target.all.at(0x1f).exec_file = "/old/path";
  EXPECT_EQ(ask("qXfer:exec-file:read::0,4"), "m/old");
  target.all.at(0x1f).exec_file = "/new/place";
  EXPECT_EQ(ask("qXfer:exec-file:read::4,10"), "l/path");
  EXPECT_EQ(ask("qXfer:exec-file:read::0,4"), "m/new");
}

TEST_F(QXferTest, SlicesFitAfterEscaping) {
  target.all.at(0x1f).auxv = std::vector<std::uint8_t>(Session::kPacketSize, '#');
  const std::string slice = ask("qXfer:auxv:read::0,20000");
  EXPECT_LE(slice.size(), Session::kPacketSize);
  EXPECT_EQ(slice[0], 'm');
}

TEST_F(QXferTest, RefusesMalformedRequests) {
  for (const char* bad :
       {"qXfer:auxv:read:", "qXfer:auxv:read::", "qXfer:auxv:read::0", "qXfer:auxv:read::0,",
        "qXfer:auxv:read::0,10x", "qXfer:auxv:read::-1,10", "qXfer:auxv:read:x:0,10",
        "qXfer:siginfo:read:x:0,10", "qXfer:threads:read:x:0,10", "qXfer:exec-file:read:zz:0,10",
        "qXfer:exec-file:read:99:0,10", "qXfer:features:read:other.xml:0,10"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
  for (const char* unknown :
       {"qXfer:", "qXfer:auxv", "qXfer:auxv:", "qXfer:auxv:write::0:a", "qXfer:zzz:read::0,10",
        "qXfer:memory-map:read::0,10", "qXfer:uib:read::0,10", "qXfer:fdpic:read::0,10"}) {
    EXPECT_EQ(ask(unknown), "") << unknown;
  }
}

TEST_F(QXferTest, DescribesTheTarget) {
  const std::string xml = read("features", "target.xml");
  EXPECT_THAT(xml, HasSubstr("<architecture>i386:x86-64</architecture>"));
  EXPECT_EQ(ask("qXfer:features:read:target.xml:fffffff,10"), "E01");
}

TEST_F(QXferTest, DescribesTheTargetBeforeAnyThreadIsSelected) {
  RecordingSink fresh_sink;
  Session fresh{target, state, fresh_sink};
  fresh.on_packet("qXfer:features:read:target.xml:0,1000");
  ASSERT_EQ(fresh_sink.packets.size(), 1U);
  EXPECT_THAT(fresh_sink.packets[0], HasSubstr("i386:x86-64"));
}

TEST_F(QXferTest, NothingIsDescribedWithoutProcess) {
  target.all.clear();
  EXPECT_EQ(read("features", "target.xml"), "E01");
  EXPECT_EQ(read("auxv"), "E01");
  EXPECT_EQ(read("siginfo"), "E01");
  EXPECT_EQ(read("exec-file"), "E01");
  EXPECT_EQ(read("libraries-svr4"), "E01");
  EXPECT_EQ(read("threads"), "l<threads>\n</threads>\n");
}

TEST_F(QXferTest, ListsThreads) {
  target.thread(thread).name = "a<b>&\"c";
  target.thread(thread).core = 12;
  target.thread(thread).handle = {0x40, 0xf7};
  EXPECT_EQ(read("threads"),
            "l<threads>\n<thread id=\"p1f.1f\" core=\"12\" name=\"a&lt;b&gt;&amp;&quot;c\" "
            "handle=\"40f7\"/>\n</threads>\n");
}

TEST_F(QXferTest, ThreadNamesStayValidXml) {
  target.thread(thread).name = "a\x01z";
  EXPECT_THAT(read("threads"), HasSubstr("name=\"a?z\""));
}

class LibrariesTest : public QXferTest {
 protected:
  LibrariesTest() {
    LinkMapList list;
    list.main = TraceeAddr{0x100};
    list.entries = {entry("", 0x200, 0x9000), entry("/lib/a.so", 0x300, 0x9000),
                    entry("/lib/b&c.so", 0x400, 0x9000), entry("/lib/other.so", 0x500, 0xa000)};
    target.all.at(0x1f).link_maps = list;
  }

  static LinkMapEntry entry(std::string name, std::uint64_t map, std::uint64_t lmid) {
    return {std::move(name), TraceeAddr{map}, TraceeAddr{0x7000}, TraceeAddr{0x8000},
            TraceeAddr{lmid}};
  }
};

TEST_F(LibrariesTest, ListsWhatTheLinkerLoaded) {
  EXPECT_EQ(read("libraries-svr4"),
            "l<library-list-svr4 version=\"1.0\" main-lm=\"0x100\">"
            "<library name=\"/lib/a.so\" lm=\"0x300\" l_addr=\"0x7000\" l_ld=\"0x8000\" "
            "lmid=\"0x9000\"/>"
            "<library name=\"/lib/b&amp;c.so\" lm=\"0x400\" l_addr=\"0x7000\" l_ld=\"0x8000\" "
            "lmid=\"0x9000\"/>"
            "<library name=\"/lib/other.so\" lm=\"0x500\" l_addr=\"0x7000\" l_ld=\"0x8000\" "
            "lmid=\"0xa000\"/></library-list-svr4>");
}

TEST_F(LibrariesTest, ContinuesAListGdbKnowsPartOf) {
  const std::string part = read("libraries-svr4", "lmid=9000;start=400;prev=300");
  EXPECT_THAT(part, HasSubstr("b&amp;c.so"));
  EXPECT_THAT(part, Not(HasSubstr("a.so")));
  EXPECT_THAT(part, Not(HasSubstr("other.so")));
  EXPECT_THAT(part, Not(HasSubstr("main-lm")));
}

TEST_F(LibrariesTest, RefusesAStartThatIsNowhere) {
  EXPECT_EQ(read("libraries-svr4", "start=999;prev=300"), "E01");
  EXPECT_EQ(read("libraries-svr4", "start"), "E01");
  EXPECT_EQ(read("libraries-svr4", "start=zz"), "E01");
}

TEST_F(LibrariesTest, AnEmptyListIsWellFormed) {
  target.all.at(0x1f).link_maps = LinkMapList{};
  EXPECT_EQ(read("libraries-svr4"), "l<library-list-svr4 version=\"1.0\"></library-list-svr4>");
  target.all.at(0x1f).link_maps.reset();
  EXPECT_EQ(read("libraries-svr4"), "E01");
}

TEST_F(LibrariesTest, TellsLldbWhereTheLinkerPutsItsAddress) {
  target.all.at(0x1f).link_maps->debug_pointer = TraceeAddr{0x7ffff7abc8};
  EXPECT_EQ(ask("qShlibInfoAddr"), "7ffff7abc8");
  target.all.at(0x1f).link_maps.reset();
  EXPECT_EQ(ask("qShlibInfoAddr"), "E01");
}

TEST_F(QXferTest, ReadsAndWritesSignalInformation) {
  target.thread(thread).siginfo[0] = 11;
  EXPECT_EQ(read("siginfo").size(), 129U);
  EXPECT_EQ(ask(std::string_view{"qXfer:siginfo:write::0:\x05", 24}), "1");
  EXPECT_EQ(target.thread(thread).siginfo[0], 5);
  EXPECT_EQ(ask("qXfer:siginfo:write::7f:z"), "1");
  EXPECT_EQ(target.thread(thread).siginfo[127], 'z');
  for (const char* bad :
       {"qXfer:siginfo:write::80:z", "qXfer:siginfo:write::7f:zz",
        "qXfer:siginfo:write::ffffffffffffffff:z", "qXfer:siginfo:write:x:0:z",
        "qXfer:siginfo:write::0", "qXfer:siginfo:write::", "qXfer:siginfo:write:"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(QXferTest, ListsTheTablesOfTheSystem) {
  const std::string types = read("osdata");
  EXPECT_EQ(read("osdata", "types"), types);
  for (const char* type : {"cpus", "files", "modules", "msg", "processes", "procgroups",
                           "semaphores", "shm", "sockets", "threads"}) {
    EXPECT_THAT(types, HasSubstr("<column name=\"Type\">" + std::string{type} + "</column>"));
    EXPECT_THAT(read("osdata", type), HasSubstr("<osdata type=\"")) << type;
  }
  EXPECT_EQ(read("osdata", "zz"), "l");
}

TEST_F(QXferTest, TheTableOfProcessesHasThisOne) {
  std::string document;
  std::string part;
  do {
    part = ask("qXfer:osdata:read:processes:" + fmt::format("{:x}", document.size()) + ",8000");
    ASSERT_FALSE(part.empty());
    document += part.substr(1);
  } while (part[0] == 'm');
  EXPECT_THAT(document, StartsWith("<osdata type=\"processes\">"));
  EXPECT_THAT(document, HasSubstr("<column name=\"pid\">" + std::to_string(::getpid()) + "<"));
}

}  // namespace
}  // namespace backtrail::server
