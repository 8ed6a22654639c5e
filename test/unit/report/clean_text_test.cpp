// SPDX-License-Identifier: Apache-2.0
// Tests hostile names.
#include "decoder/report/clean_text.hpp"

#include <gtest/gtest.h>

namespace backtrail::decoder {
namespace {

TEST(CleanText, ValidTextStaysAsItIs) {
  const std::string text =
      "operator<=>(gr\xc3\xb6\xc3\x9f"
      "e, \xe2\x82\xac, \xf0\x9f\x90\x8c)";
  EXPECT_EQ(valid_utf8(text), text);
  EXPECT_EQ(printable(text), text);
}

TEST(CleanText, WhatIsNoUtf8IsReplaced) {
  for (const char* text : {"\xff", "\xc0\x80", "\xed\xa0\x80", "\xe2\x82", "\xf8", "\x80"}) {
    const std::string clean = valid_utf8(text);
    EXPECT_EQ(clean.find_first_of("\xff\xc0\xed\xe2\xf8\x80"), std::string::npos) << clean;
    EXPECT_EQ(clean.substr(0, 3), "\xef\xbf\xbd");
  }
}

TEST(CleanText, TerminalsGetNoControlCharacters) {
  EXPECT_EQ(printable("a\n\x1b[31mb"), "a\\x0a\\x1b[31mb");
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\u{202e}");
  EXPECT_EQ(printable("\xc2\x9b"), "\\u{9b}");
  EXPECT_EQ(printable("\xc2"), "\\xc2");
}

TEST(CleanText, MarkdownMeansNothing) {
  EXPECT_EQ(markdown_escaped("<b>[x](y)`"), "&lt;b&gt;\\[x\\]\\(y\\)\\`");
}

}  // namespace
}  // namespace backtrail::decoder
