// SPDX-License-Identifier: Apache-2.0
#include "decoder/corefile/about_text.hpp"

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

using Facts = std::map<std::string, std::string>;

TEST(AboutText, FactsSurviveOddBytes) {
  const Facts facts{{"a", "x=y\n%0a\x7f%"}, {"b", ""}};
  EXPECT_EQ(parse_about(about_text(facts)), facts);
}

TEST(AboutText, IsLinesThatPeopleRead) {
  EXPECT_EQ(about_text({{"name", "a b"}, {"odd", "\n%"}}), "name=a b\nodd=%0a%25\n");
}

TEST(AboutText, ReadsWhatOthersWrote) {
  EXPECT_EQ(parse_about("no equals\na=%4\nb=%zz\nc=1"),
            (Facts{{"a", "%4"}, {"b", "%zz"}, {"c", "1"}}));
}

}  // namespace
}  // namespace backtrail::decoder
