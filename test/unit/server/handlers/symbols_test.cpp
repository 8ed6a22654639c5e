// SPDX-License-Identifier: Apache-2.0
#include "test/unit/server/session_fixture.hpp"

namespace backtrail::server {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

class SymbolsTest : public SessionTest {
 protected:
  SymbolsTest() { target.add_process(1); }

  std::string question(std::string_view name) { return "qSymbol:" + hex(name); }
  std::string known(std::string_view name, std::string_view address) {
    return "qSymbol:" + std::string{address} + ":" + hex(name);
  }
  std::string unknown(std::string_view name) { return "qSymbol::" + hex(name); }
};

TEST_F(SymbolsTest, NothingWantedIsOk) {
  EXPECT_EQ(ask("qSymbol::"), "OK");
  EXPECT_THAT(target.resolved, IsEmpty());
}

TEST_F(SymbolsTest, AsksOneByOne) {
  target.wanted = {{"nptl_version", "b", "c"}};
  EXPECT_EQ(ask("qSymbol::"), question("nptl_version"));
  // gdb may read memory between questions.
  EXPECT_EQ(ask("m1000,1"), "00");
  EXPECT_EQ(ask(known("nptl_version", "7f00")), question("b"));
  EXPECT_EQ(ask(unknown("b")), question("c"));
  EXPECT_EQ(ask(known("c", "8")), "OK");
  ASSERT_THAT(target.resolved, SizeIs(1));
  EXPECT_THAT(target.resolved[0],
              ElementsAre(Pair("c", TraceeAddr{8}), Pair("nptl_version", TraceeAddr{0x7f00})));
}

TEST_F(SymbolsTest, AsksNothingElseWithoutTheFirst) {
  target.wanted = {{"nptl_version", "b", "c"}};
  ask("qSymbol::");
  EXPECT_EQ(ask(unknown("nptl_version")), "OK");
  ASSERT_THAT(target.resolved, SizeIs(1));
  EXPECT_THAT(target.resolved[0], IsEmpty());
}

TEST_F(SymbolsTest, GoesOnWhileNewNamesAreWanted) {
  target.wanted = {{"a"}, {"a", "b"}, {"a", "b"}};
  EXPECT_EQ(ask("qSymbol::"), question("a"));
  EXPECT_EQ(ask(known("a", "1")), question("b"));
  EXPECT_EQ(ask(known("b", "2")), "OK");
  EXPECT_THAT(target.resolved, SizeIs(2));
}

TEST_F(SymbolsTest, AnAnswerToNoQuestionIsAnError) {
  EXPECT_EQ(ask(known("a", "1")), "E01");
  target.wanted = {{"a"}};
  ask("qSymbol::");
  EXPECT_EQ(ask(known("b", "1")), "E01");
  EXPECT_EQ(ask(known("a", "1")), "E01");
  EXPECT_THAT(target.resolved, IsEmpty());
}

TEST_F(SymbolsTest, RefusesMalformedAnswers) {
  for (const char* bad :
       {"qSymbol:", "qSymbol:1", "qSymbol:zz:61", "qSymbol:1:6", "qSymbol:1:zz"}) {
    target.wanted = {{"a"}};
    ask("qSymbol::");
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

TEST_F(SymbolsTest, StartsAnewWheneverAsked) {
  target.wanted = {{"a", "b"}, {"a"}};
  ask("qSymbol::");
  EXPECT_EQ(ask("qSymbol::"), question("a"));
  EXPECT_EQ(ask(known("a", "1")), "OK");
}

TEST_F(SymbolsTest, WithoutProcessThereIsNothingToDo) {
  target.all.clear();
  EXPECT_EQ(ask("qSymbol::"), "OK");
}

TEST_F(SymbolsTest, FindsThreadLocalVariables) {
  ask("qSupported:multiprocess+");
  EXPECT_EQ(ask("qGetTLSAddr:p1.1,10,7f00"), "E01");
  target.tls = TraceeAddr{0x7000};
  EXPECT_EQ(ask("qGetTLSAddr:p1.1,10,7f00"), "7010");
  for (const char* bad :
       {"qGetTLSAddr:", "qGetTLSAddr:p1.1", "qGetTLSAddr:p1.1,10", "qGetTLSAddr:p1.1,10,",
        "qGetTLSAddr:p1.1,10,7f00x", "qGetTLSAddr:p1.9,10,7f00", "qGetTLSAddr:p1.-1,10,7f00"}) {
    EXPECT_EQ(ask(bad), "E01") << bad;
  }
}

}  // namespace
}  // namespace backtrail::server
