// SPDX-License-Identifier: Apache-2.0
// `backtrail why`: where values were last written before a crash.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <utility>

#include <gmock/gmock.h>

#include "report_fixture.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class Why : public ReportFixture {
 protected:
  std::string why(const std::string& expression, int wanted = 0) {
    return run({BT_SERVER, "why", "x.core", expression}, wanted);
  }
};

TEST_F(Why, FollowsAValueToTheConstantThatItIs) {
  for (const char* source : {"cache", "step"}) {
    record(source == std::string{"step"} ? "origin_static" : "origin", {}, source);
    const std::string trail = why("p");
    EXPECT_THAT(trail,
                ContainsRegex("^p of main = 0x10, at 0x7ff[0-9a-f]+\n"
                              "  0x10 was stored at 0x7ff[0-9a-f]+ by hand_on.* origin.c:22"));
    EXPECT_THAT(trail, ContainsRegex("0x10 was loaded from 0x[0-9a-f]+ by hand_on.* origin.c:22"));
    EXPECT_THAT(trail,
                ContainsRegex("0x10 was stored at 0x[0-9a-f]+ by corrupt.* origin.c:18.*\n"
                              "  The trail ends: 0x10 is a constant of the program, in corrupt"));
  }
}

TEST_F(Why, TakesGlobalVariablesRegistersAndAddresses) {
  record("origin");
  const std::string trail = why("thing");
  EXPECT_THAT(trail, HasSubstr("by corrupt"));
  const std::size_t at = trail.find("at 0x") + 3;
  const std::string address = trail.substr(at, trail.find('\n') - at);
  EXPECT_THAT(why(address), AllOf(HasSubstr("8 bytes at " + address + " = 0x10"),
                                  HasSubstr("by corrupt"), HasSubstr("a constant")));
  EXPECT_THAT(why(address + ":2"), AllOf(HasSubstr("2 bytes at " + address + " = 0x10\n"),
                                         HasSubstr("by corrupt"), HasSubstr("a constant")));
  // The pointer that the last instruction used.
  EXPECT_THAT(why("$rax"), AllOf(HasSubstr("0x10 was loaded from"), HasSubstr("by hand_on")));
}

TEST_F(Why, FindsGlobalVariablesOfOptimisedPrograms) {
  record("globals");
  // A declaration comes before the definition.
  EXPECT_THAT(why("shared"), ContainsRegex("^shared of globals.cpp = 21, at 0x[0-9a-f]+\n"
                                           "  0x15 was stored at 0x[0-9a-f]+ by set_own"));
  // The innermost function's file comes first.
  EXPECT_THAT(why("in_both"), HasSubstr("in_both of globals.cpp = 11, at"));
  EXPECT_THAT(why("'globals_other.cpp'::only_there"), HasSubstr("= 71, at"));
  EXPECT_THAT(why("globals_other.cpp::in_both"),
              HasSubstr("in_both of globals_other.cpp = 61, at"));
  EXPECT_THAT(why("only_there"), HasSubstr("only_there of globals_other.cpp = 71, at"));
  EXPECT_THAT(why("in_other"), HasSubstr("in_other of globals_other.cpp = 133, at"));
  EXPECT_THAT(why("made"), HasSubstr("one::Box::made of globals.cpp = 41, at"));
  EXPECT_THAT(why("Box::made"), HasSubstr("one::Box::made of globals.cpp = 41, at"));
  EXPECT_THAT(why("one::count"), HasSubstr("one::count of globals.cpp = 31, at"));
  EXPECT_THAT(why("other::count"), HasSubstr("other::count of globals.cpp = 51, at"));
  EXPECT_THAT(why("count", 1), HasSubstr("say which one: globals.cpp::one::count, "
                                         "globals.cpp::other::count"));
  EXPECT_THAT(why("ount", 1), HasSubstr("no function on the stack"));
}

/// Other code may have used the register's upper bits.
TEST_F(Why, FollowsOnlyTheBitsOfAVariableInARegister) {
  record("narrow");
  EXPECT_THAT(why("small"),
              StartsWith("small of narrow = 4660\n"
                         "  The trail ends: 0x1234 is a constant of the program, in narrow"));
}

TEST_F(Why, SaysWhereATrailEnds) {
  record("origin");
  // From glibc 2.41 on the instruction is in a local function. A stripped library does not name it.
  EXPECT_THAT(
      why("letter"),
      ContainsRegex("a system call wrote it, or may have: "
                    "(read|.*syscall_cancel|libc\\.so\\.6\\+0x[0-9a-f]+ \\(after read\\(\\)\\))"));
  EXPECT_THAT(why("sum"), AllOf(HasSubstr("by add_up"), HasSubstr("was made from"),
                                HasSubstr("there are several values to follow")));
  EXPECT_THAT(why("untouched"),
              AnyOf(ContainsRegex("= 5, at .*\n  The trail ends: nothing wrote it"),
                    ContainsRegex("= 5, at .*\n  The trail ends: .*may have")));
}

TEST_F(Why, SaysThatAnInstructionMayBeHalfDone) {
  record("trail_ends", {"half"});
  for (const char* where : {"$rdi", "$rcx"}) {
    EXPECT_THAT(why(where), ContainsRegex("which may be half done: store_half.*: `rep stosb"));
  }
}

TEST_F(Why, NamesACallThatMayHaveWrittenAnywhere) {
  record("trail_ends", {"call"});
  EXPECT_THAT(why("kept"), ContainsRegex("^kept of trail_ends.c = 7, at 0x[0-9a-f]+\n"
                                         "  The trail ends: it may have been written by "
                                         "syscall.*`syscall`.*: what that changes is not known"));
}

TEST_F(Why, NamesTheReturnFromAHandler) {
  record("trail_ends", {"handler"});
  // libc's function is local: only its debug information names it.
  EXPECT_THAT(why("$r12"),
              ContainsRegex("^.r12\n  The trail ends: the return from a signal handler "
                            "set it: (.*restore_rt|libc\\.so\\.6\\+0x).*: `syscall`"));
}

TEST_F(Why, ShowsInstructionsAsTheyWereExecuted) {
  record("rewritten_code");
  EXPECT_THAT(why("sum"), AllOf(ContainsRegex("0x15 was stored at 0x[0-9a-f]+ by main"),
                                ContainsRegex("0x15 was made from .*`addl \\$6, %eax`")));
}

/// The trace of a thread does not tell what others do to mappings.
TEST_F(Why, TrustsNoCodeThatAnotherThreadMayHaveChanged) {
  for (const auto& [who, fact] : {std::pair{"thread", "foreign-writes=anywhere"},
                                  std::pair{"alone", "foreign-writes=none"}}) {
    record("patched", {who});
    std::ifstream file{folder / "x.core", std::ios::binary};
    const std::string contents{std::istreambuf_iterator<char>{file}, {}};
    EXPECT_NE(contents.find(fact), std::string::npos) << who;
  }
}

TEST_F(Why, ExplainsWhatItCannotFollow) {
  record("origin");
  EXPECT_THAT(why("nothing", 1), HasSubstr("no function on the stack"));
  EXPECT_THAT(why("$eax", 1), HasSubstr("no general register"));
  EXPECT_THAT(why("0x12:", 1), HasSubstr("is no address"));
  EXPECT_THAT(why("0x12:0", 1), HasSubstr("1 to 4096 bytes"));
  EXPECT_THAT(why("0x10", 1), HasSubstr("has no memory at 0x10"));
  EXPECT_THAT(run({BT_SERVER, "why", "none.core", "p"}, 1), HasSubstr("cannot read"));
  record("origin", {}, "none");
  EXPECT_THAT(why("p", 1), HasSubstr("no branch trace"));
}

TEST_F(Why, SaysThat32BitProgramsAreNotFollowed) {
  if (!std::filesystem::exists(std::string{BT_INFERIOR_DIR} + "/stacks32_static")) {
    GTEST_SKIP() << "no 32-bit programs here";
  }
  record("stacks32_static", {"handler", "14"}, "step");
  EXPECT_THAT(why("argc", 1), HasSubstr("values of 32-bit programs are not followed"));
}

}  // namespace
}  // namespace backtrail::test
