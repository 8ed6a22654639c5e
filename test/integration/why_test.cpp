// SPDX-License-Identifier: Apache-2.0
// `backtrail why`: where values were last written before a crash.
#include <gmock/gmock.h>

#include "report_fixture.hpp"

namespace backtrail::test {
namespace {

using ::testing::AllOf;
using ::testing::AnyOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

class Why : public ReportFixture {
 protected:
  std::string why(const std::string& expression, int wanted = 0) {
    return run({BT_SERVER, "why", "x.core", expression}, wanted);
  }
};

TEST_F(Why, FollowsAValueToTheConstantThatItIs) {
  for (const char* source : {"cache", "step"}) {
    record("origin", {}, source);
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
  EXPECT_THAT(why(address + ":2"), HasSubstr("2 bytes at"));
  // The pointer that the last instruction used.
  EXPECT_THAT(why("$rax"), AllOf(HasSubstr("0x10 was loaded from"), HasSubstr("by hand_on")));
}

TEST_F(Why, SaysWhereATrailEnds) {
  record("origin");
  EXPECT_THAT(why("letter"), HasSubstr("a system call wrote it, or may have: read"));
  EXPECT_THAT(why("sum"), AllOf(HasSubstr("by add_up"), HasSubstr("was made from"),
                                HasSubstr("there are several values to follow")));
  EXPECT_THAT(why("untouched"), AnyOf(HasSubstr("nothing wrote it"), HasSubstr("may have")));
}

TEST_F(Why, ExplainsWhatItCannotFollow) {
  record("origin");
  EXPECT_THAT(why("nothing", 1), HasSubstr("no function on the stack"));
  EXPECT_THAT(why("$eax", 1), HasSubstr("no general register"));
  EXPECT_THAT(why("0x12:", 1), HasSubstr("is no address"));
  EXPECT_THAT(why("0x12:0", 1), HasSubstr("1 to 4096 bytes"));
  EXPECT_THAT(run({BT_SERVER, "why", "none.core", "p"}, 1), HasSubstr("cannot read"));
  record("origin", {}, "none");
  EXPECT_THAT(why("p", 1), HasSubstr("no branch trace"));
}

}  // namespace
}  // namespace backtrail::test
